"""Lemma 2 under Definition 1: the listing against loops, planted falsehoods refuted, and the old name of the claim."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import theory_lemmas as naive
from naive.objective import imbalance

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import record
from lbopt.kernels.sampling import gap_optima as kernels
from lbopt.studies.check import CheckConfig
from lbopt.theory.claims.lemma_2_definition_1 import CLAIMS, measure_theorem
from lbopt.theory.ledger import find_claim
from lbopt.theory.steps.gap_tally import TIES, definition_1_bound, gap_tally, tally_finding
from lbopt.theory.steps.small_step import SmallStep, combinations_of
from lbopt.theory.verdict import Verdict, gravest

jit = pytest.mark.jit


def by_loops(step, ties, bound):
    """What `gap_optima` writes, from every placement as multisets of sizes."""
    best, found = naive.all_optima(step.before, step.free, step.sizes, step.copies)
    loads = {one: naive.loads_of(step.before, one) for one in found}
    keys = {
        "every": lambda one: 0,
        "leximax": lambda one: sorted(loads[one], reverse=True),
        "squares": lambda one: sum(load * load for load in loads[one]),
    }
    least = min(keys[ties](one) for one in found)
    found = [one for one in found if keys[ties](one) == least]
    excess = {one: max(loads[one]) - min(loads[one]) - bound for one in found}
    tight = [one for one in found if excess[one] == 0 and bound >= 1]
    second = [
        one
        for one in tight
        if any(
            load == min(loads[one]) and any(size < step.sizes[-1] for size in held)
            for load, held in zip(loads[one], one, strict=True)
        )
    ]
    assert all(imbalance(loads[one]) == best for one in found)
    above = sum(value > 0 for value in excess.values())
    return best, len(found), len(tight), len(second), above, max(excess.values())


@st.composite
def steps(draw):
    workers = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=2, max_size=4))
    slots = sum(free for _, free in workers)
    requests = draw(st.lists(st.integers(1, 4), min_size=max(1, slots), max_size=slots + 4))
    return SmallStep.of([load for load, _ in workers], [free for _, free in workers], requests)


@given(steps(), st.sampled_from(list(TIES)), st.integers(-1, 4))
@settings(max_examples=75)
def test_the_optima_of_a_step_are_those_of_loops(step, ties, bound):
    before, free = np.array(step.before, np.int64), np.array(step.free, np.int64)
    sizes, copies = np.array(step.sizes, np.int64), np.array(step.copies, np.int64)
    pattern, first = combinations_of(len(step.sizes), max(step.free))
    tally, placed = record(kernels.STEP_TALLY), np.zeros((free.size, sizes.size), np.int64)
    code = {"every": kernels.EVERY, "leximax": kernels.LEXIMAX, "squares": kernels.SQUARES}[ties]
    best = kernels.gap_optima(before, free, sizes, copies, pattern, first, bound, code, tally, placed)
    names = ("optima", "tight", "tight_second", "violations", "largest")
    assert (best, *(int(tally[name]) for name in names)) == by_loops(step, ties, bound)
    loads = step.loads(placed)
    assert loads.max() - loads.min() - bound == tally.largest
    assert imbalance(loads.tolist()) == best


@pytest.mark.parametrize("plentiful", [False, True])
def test_the_steps_that_are_drawn_meet_the_hypotheses(plentiful):
    seen = set()
    for seed in range(60):
        step = gap_tally(3, 0, 3, 4, 3, 5, 1, seed, ties="every", plentiful=plentiful).worst
        assert step.is_overloaded
        assert step.sizes[-1] == 4
        assert len(step.sizes) == 3
        assert not plentiful or step.copies[-1] >= sum(step.free)
        assert max(step.free) <= 3
        assert max(step.before) <= 5
        seen.add(step)
    assert len(seen) > 55


@jit
def test_the_theorem_holds_and_some_of_its_optima_would_refute_one_token_less():
    findings = [finding for regime in CLAIMS[0].quick for finding in CLAIMS[0].measure(seed=1, **regime)]
    assert gravest(finding.verdict() for finding in findings) == Verdict.HOLDS
    assert all(finding.measured == 0 for finding in findings)


@jit
@pytest.mark.parametrize(("ties", "plentiful"), [("leximax", False), ("squares", False), ("every", True)])
def test_a_bound_smaller_by_one_token_is_refuted(ties, plentiful, solved_at_the_terminal):
    given_, options = (4, 0, 2, 3, 3, 4, 5_000, 3), {"ties": ties, "plentiful": plentiful, "less": 1}
    finding = tally_finding("", "(i)", gap_tally(*given_, **options), **options)
    assert finding.verdict() == Verdict.REFUTED
    assert finding.measured == 1
    problem, loads = solved_at_the_terminal(finding.counterexample)
    step = SmallStep.of(problem.base[:, 0], problem.slots, problem.work[:, 0])
    assert step.is_overloaded
    assert not plentiful or step.copies[-1] >= sum(step.free)
    assert loads.max() - loads.min() == definition_1_bound(step)


@jit
def test_part_two_without_its_hypothesis_is_refuted(solved_at_the_terminal):
    options = {"ties": "every", "plentiful": False}
    finding = tally_finding("", "(ii)", gap_tally(6, 0, 2, 3, 3, 8, 200_000, 1, **options), **options)
    assert finding.verdict() == Verdict.REFUTED
    problem, loads = solved_at_the_terminal(finding.counterexample)
    step = SmallStep.of(problem.base[:, 0], problem.slots, problem.work[:, 0])
    assert step.copies[-1] < sum(step.free)
    assert loads.max() - loads.min() > definition_1_bound(step)


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
