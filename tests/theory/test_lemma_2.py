"""Lemma 2: what holds could have failed, and each step that denies the printed form does so by enumeration too."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import theory_lemmas as naive

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.solvers import solve
from lbopt.theory.claims import lemma_2
from lbopt.theory.claims.lemma_2 import (
    corrected_bound,
    measure_corrected,
    measure_leximax,
    measure_printed,
    sharp_bound,
)
from lbopt.theory.finding import Verdict, gravest
from lbopt.theory.steps.small_step import (
    SmallStep,
    StepShape,
    any_overloaded_steps,
    replete_steps,
    two_plenty_steps,
    until,
)
from lbopt.theory.steps.statements import CASES, gap_within, held_against, stubborn_step

jit = pytest.mark.jit


@pytest.mark.some(but=("lemma-2-definition-1",))
@jit
@pytest.mark.parametrize("claim", (*lemma_2.CORRECTED, *lemma_2.PRINTED), ids=lambda claim: claim.name)
def test_the_quick_verdict_is_the_expected_one(claim):
    findings = [finding for regime in claim.quick for finding in claim.measure(seed=1, **regime)]
    assert gravest(finding.verdict() for finding in findings) == claim.expected


@jit
@pytest.mark.parametrize("bound", [corrected_bound, sharp_bound])
def test_a_bound_too_small_by_one_is_caught_with_an_example(bound, solved_at_the_terminal):
    draw, rng = replete_steps(StepShape(G=2, c_max=3, s_max=4, classes=2, spread=12)), np.random.default_rng(0)
    said = gap_within(lambda step: bound(step) - 1)
    finding = held_against(said, "", until(draw, 2_000, rng))
    assert finding.verdict() == Verdict.REFUTED
    problem, loads = solved_at_the_terminal(finding.counterexample)
    step = SmallStep.of(problem.base[:, 0], problem.slots, problem.work[:, 0])
    assert naive.is_replete(step)
    assert loads.max() - loads.min() > bound(step) - 1


@jit
@pytest.mark.parametrize(
    ("sampler", "meets", "ties"),
    [(two_plenty_steps, naive.has_two_replete, "every"), (any_overloaded_steps, naive.is_overloaded, "leximax")],
)
def test_other_pools_meet_their_hypotheses_and_a_bound_too_small_is_caught(sampler, meets, ties):
    shape = StepShape(G=3, c_max=3, s_max=3, classes=3, spread=10)
    draw, rng = sampler(shape), np.random.default_rng(0)
    assert all(meets(draw(rng)) for _ in range(300))
    said = gap_within(lambda step: corrected_bound(step) - 2, ties)
    finding = held_against(said, "", until(draw, 2_000, rng))
    assert finding.verdict() == Verdict.REFUTED
    problem = StepProblem.from_dict(finding.counterexample["problem"])
    assert meets(SmallStep.of(problem.base[:, 0], problem.slots, problem.work[:, 0]))


def test_under_definition_1_one_optimum_is_beyond_the_corrected_bound_and_others_are_not():
    step = lemma_2.STORED
    assert naive.is_overloaded(step)
    assert not naive.is_replete(step)
    assert corrected_bound(step) == 3 - 2 + (1 - (3 - 2))
    best, optima = naive.all_optima(step.before, step.free, step.sizes, step.copies)
    loads = [naive.loads_of(step.before, one) for one in optima]
    assert best == 2
    assert {max(one) - min(one) for one in loads} == {1, 2}
    assert [4, 2, 4, 4, 4] in loads


@given(st.lists(st.integers(1, 30), min_size=2, max_size=5, unique=True), st.data())
def test_the_sharp_bound_is_never_the_weaker_one(sizes, data):
    workers = data.draw(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 5)), min_size=2, max_size=5))
    free = tuple(slots for _, slots in workers)
    copies = (max(1, sum(free)),) * len(sizes)
    step = SmallStep(tuple(load for load, _ in workers), free, tuple(sorted(sizes)), copies)
    s, fewest, most = max(sizes), min(free), max(free)
    before = max(step.before) - min(step.before)
    assert corrected_bound(step) == s - 2 + max(0, before - (s * fewest - (s - 1) * most))
    v = sorted(sizes)[-2]
    apart = max(b - a for a, b in pairwise(sorted(sizes)))
    assert sharp_bound(step) == max(apart - 1, s - v - 1 + before - (s * fewest - v * most))
    assert sharp_bound(step) <= corrected_bound(step)


SMALL = [
    (name, step) for name, case in CASES.items() for step in case.stored if sum(step.free) < 6 or len(step.free) < 3
]


@pytest.mark.parametrize(("name", "step"), SMALL)
def test_a_stored_step_denies_its_case_by_enumeration(name, step):
    """Written anew from the lemma: placements as multisets, loops, no array of the package but the step itself."""
    c, s, U = step.free[0], max(step.sizes), sum(step.free)
    assert len(set(step.free)) == 1
    assert sum(step.copies) - max(step.copies) >= U
    everything = list(naive.placements(step.before, step.free, step.sizes, step.copies))
    _, optima = naive.all_optima(step.before, step.free, step.sizes, step.copies)
    if name in ("min-max", "ties"):
        optima = everything
    if name != "tie-break":
        least = min(sorted(naive.loads_of(step.before, one), reverse=True) for one in optima)
        optima = [one for one in optima if sorted(naive.loads_of(step.before, one), reverse=True) == least]
    before = max(step.before) - min(step.before)
    denied = False
    for one in optima:
        loads = naive.loads_of(step.before, one)
        gap = max(loads) - min(loads)
        heaviest = [held for held, load in zip(one, loads, strict=True) if load == max(loads)]
        lightest = [held for held, load in zip(one, loads, strict=True) if load == min(loads)]
        if name in ("ties", "separation"):
            denied |= gap > s and all(max(a) >= min(b) for a in heaviest for b in lightest)
        elif name == "copies":
            denied |= gap >= s - 1 and all(min(held) < s for held in lightest)
        else:
            denied |= gap > max(s, before - c)
    assert denied
    assert held_against(CASES[name], "", [step]).violations


@jit
@pytest.mark.parametrize("x", [8, 20, 1000, 10**6])
def test_under_definition_1_the_gap_need_not_fall_at_all(x):
    step = SmallStep((x, 0, x), (1, 1, 1), (1, 5, 7, 8), (1, 1, 1, 3))
    best, optima = step.optima
    assert best == x
    assert step.loads(optima).tolist() == [[x + 8, 8, x + 8]]


@jit
@pytest.mark.parametrize("c", [1, 2, 3])
def test_for_every_number_of_slots_some_step_keeps_all_of_its_gap(c):
    """With three slots the exact search says it; nothing is listed."""
    s = 3 ** (3 * c - 1) + 1
    x = c * s + 7
    step = stubborn_step(c, x)
    assert naive.is_overloaded(step)
    answer = solve(step.problem())
    assert answer.status == "optimal"
    assert answer.objective == x
    if c < 3:
        best, optima = step.optima
        assert best == x
        assert step.loads(optima).tolist() == [[x + c * s, c * s, x + c * s]]


@jit
@pytest.mark.parametrize("name", CASES)
def test_what_is_found_opens_in_lbopt_solve(name, solved_at_the_terminal):
    regime = next((one for one in lemma_2._CASES if one.get("case") == name), {})
    findings = measure_leximax(seed=2) if name == "definition-1" else measure_printed(seed=2, **regime)
    assert [finding.violations for finding in findings] == [1] * (len(CASES[name].stored) + 1)
    for finding in findings:
        solved_at_the_terminal(finding.counterexample, is_optimal=name not in ("min-max", "ties"))


@pytest.mark.parametrize(
    ("measure", "wrong", "says"),
    [
        (measure_corrected, {"G": 1}, "lemma-2 assumes at least G = 2 workers; G is 1"),
        (measure_corrected, {"c_max": 0}, "a free slot somewhere; c_max is 0"),
        (measure_corrected, {"classes": 9}, "classes is 9 and s_max is 5"),
        (measure_corrected, {"G": 9, "c_max": 9}, "placements here"),
        (measure_corrected, {"spread": -1}, "spread is -1"),
        (measure_corrected, {"optima": 0}, "optima is 0"),
        (measure_printed, {"case": "odd"}, "one of the cases min-max, ties.*case is 'odd'"),
        (measure_printed, {"c": 0}, "c is 0"),
        (measure_printed, {"steps": 0}, "steps is 0"),
        (measure_printed, {"G": 9, "c": 3}, "placements here"),
        (measure_leximax, {"classes": 1}, "classes is 1"),
    ],
)
def test_what_it_refuses(measure, wrong, says):
    with pytest.raises(InputError, match=says):
        measure(seed=0, **wrong)
