"""Lemma 2 under Definition 1: the listing against loops, planted falsehoods refuted, and the old name of the claim."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import theory_lemmas as naive
from naive.objective import imbalance

from lbopt.exceptions import InputError
from lbopt.studies.check import CheckConfig
from lbopt.theory.claims.lemma_2 import NAME, STORED, corrected_bound, measure_theorem
from lbopt.theory.finding import Verdict, gravest
from lbopt.theory.ledger import find_claim
from lbopt.theory.steps.small_step import SmallStep, StepShape, any_overloaded_steps, until
from lbopt.theory.steps.statements import TIES, gap_within, held_against, preferred

jit = pytest.mark.jit


def by_loops(step, ties):
    """Loads of the optima that a rule for ties keeps, from every placement as multisets of sizes."""
    best, found = naive.all_optima(step.before, step.free, step.sizes, step.copies)
    loads = [naive.loads_of(step.before, one) for one in found]
    keys = {
        "every": lambda one: 0,
        "leximax": lambda one: sorted(one, reverse=True),
        "squares": lambda one: sum(load * load for load in one),
    }
    least = min(map(keys[ties], loads))
    assert all(imbalance(one) == best for one in loads)
    return sorted(one for one in loads if keys[ties](one) == least)


@st.composite
def steps(draw):
    workers = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=2, max_size=4))
    slots = sum(free for _, free in workers)
    requests = draw(st.lists(st.integers(1, 4), min_size=max(1, slots), max_size=slots + 4))
    return SmallStep.of([load for load, _ in workers], [free for _, free in workers], requests)


@given(steps(), st.sampled_from(list(TIES)))
@settings(max_examples=75)
def test_the_optima_of_a_step_are_those_of_loops(step, ties):
    assert sorted(step.loads(preferred(ties)(step)).tolist()) == by_loops(step, ties)


@pytest.mark.parametrize("plentiful", [False, True])
def test_the_steps_that_are_drawn_meet_the_hypotheses(plentiful):
    draw = any_overloaded_steps(StepShape(G=3, c_max=3, s_max=4, classes=3, spread=5), 1, plentiful=plentiful)
    rng = np.random.default_rng(0)
    seen = [draw(rng) for _ in range(60)]
    for step in seen:
        assert naive.is_overloaded(step)
        assert len(step.sizes) == 3
        assert not plentiful or step.copies[-1] >= sum(step.free)
        assert 1 <= min(step.free) <= max(step.free) <= 3
        assert max(step.before) <= 5
    assert len(set(seen)) > 50


def held(shape, optima, seed, *, ties, plentiful, less=0):
    """The bound less so many tokens against drawn steps."""
    steps = until(any_overloaded_steps(shape, plentiful=plentiful), optima, np.random.default_rng(seed))
    said = gap_within(lambda step: corrected_bound(step) - less, ties)
    return held_against(said, "", steps)


@jit
def test_the_theorem_holds_and_some_of_its_optima_would_refute_one_token_less():
    claim = find_claim(NAME)
    findings = [finding for regime in claim.quick for finding in claim.measure(seed=1, **regime)]
    assert gravest(finding.verdict() for finding in findings) == Verdict.HOLDS
    assert all(finding.measured == 0 for finding in findings)


@jit
@pytest.mark.parametrize(("ties", "plentiful"), [("leximax", False), ("squares", False), ("every", True)])
def test_a_bound_smaller_by_one_token_is_refuted(ties, plentiful, solved_at_the_terminal):
    shape = StepShape(G=4, c_max=2, s_max=3, classes=3, spread=4)
    finding = held(shape, 5_000, 3, ties=ties, plentiful=plentiful, less=1)
    assert finding.verdict() == Verdict.REFUTED
    assert finding.measured == 1
    problem, loads = solved_at_the_terminal(finding.counterexample)
    step = SmallStep.of(problem.base[:, 0], problem.slots, problem.work[:, 0])
    assert naive.is_overloaded(step)
    assert not plentiful or step.copies[-1] >= sum(step.free)
    assert loads.max() - loads.min() == corrected_bound(step)


@jit
def test_part_two_without_its_hypothesis_is_refuted(solved_at_the_terminal):
    step, said = STORED, gap_within(corrected_bound)
    finding = held_against(said, "", [step])
    assert finding.verdict() == Verdict.REFUTED
    problem, loads = solved_at_the_terminal(finding.counterexample)
    step = SmallStep.of(problem.base[:, 0], problem.slots, problem.work[:, 0])
    assert step.copies[-1] < sum(step.free)
    assert loads.max() - loads.min() > corrected_bound(step)


def test_the_old_name_finds_the_theorem_in_commands_and_stored_configurations():
    assert find_claim("lemma-2-open") is find_claim("lemma-2-definition-1")
    config = CheckConfig.of(["lemma-2-open:G=3", "lemma-2-definition-1"])
    assert [one.claim.name for one in config.chosen] == ["lemma-2-definition-1"]
    old = {"claim": "lemma-2-open", "regimes": [{"G": 7, "c_max": 1, "s_max": 4, "optima": 50_000}]}
    stored = CheckConfig.from_dict({"level": "full", "seed": 0, "claims": [old]})
    assert stored.chosen[0].claim.name == "lemma-2-definition-1"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"c_min": 3}, "lemma-2-definition-1 assumes 0 <= c_min <= c_max; c_min is 3 and c_max is 2"),
        ({"c_min": -1}, "c_min is -1"),
        ({"spread": 10**7}, "at most 1,000,000 tokens; spread is 10000000"),
        ({"s_max": 1, "classes": 1}, "s_max is 1"),
    ],
)
def test_what_it_refuses(wrong, says):
    with pytest.raises(InputError, match=says):
        measure_theorem(seed=0, **wrong)
