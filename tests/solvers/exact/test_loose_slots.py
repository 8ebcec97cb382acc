"""More free slots than any good placement uses: what counting proves, and what goes when such slots are taken away."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt import StepProblem, solve, verify
from lbopt.model.floors import counting_floor, slots_in_use
from lbopt.solvers.elementary import elementary_bound
from lbopt.solvers.exact.balance import mean_bound
from lbopt.solvers.recount import Numbers, _counted_peak, exhaust, lower_bounds

#: 30 jobs for 6 machines: 29 of 900 to 999 and one of 190. With 30 slots each this was open after 30 s.
JOBS = [930, 975, 969, 916, 947, 977, 960, 980, 974, 908, 977, 901, 960, 933, 970]
JOBS += [929, 924, 991, 960, 969, 970, 960, 950, 981, 919, 929, 981, 919, 966, 190]


@st.composite
def crowds(draw):
    """Few workers, and requests of nearly one size, which is where counting says most."""
    count = draw(st.integers(1, 7))
    base = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    slots = draw(st.lists(st.integers(0, count), min_size=len(base), max_size=len(base)))
    slots[0] = min(count, slots[0] + max(0, count - sum(slots)))
    least = draw(st.sampled_from([0, 5, 40]))
    sizes = draw(st.lists(st.integers(least, least + 9), min_size=1, max_size=min(count, sum(slots))))
    return base, slots, sizes


@settings(max_examples=300, deadline=None)
@given(crowds())
def test_counting_is_below_every_placement_and_counted_twice(crowd):
    base, slots, sizes = crowd
    slots = [min(c, len(sizes)) for c in slots]
    floor = counting_floor(np.array(base), np.array(slots), -np.sort(-np.array(sizes)))
    assert floor == _counted_peak(base, slots, sizes)
    for choice in itertools.product(range(len(base)), repeat=len(sizes)):
        if all(choice.count(g) <= c for g, c in enumerate(slots)):
            loads = [a + sum(s for s, h in zip(sizes, choice, strict=True) if h == g) for g, a in enumerate(base)]
            assert floor <= max(loads)


@settings(max_examples=200, deadline=None)
@given(crowds())
def test_slots_of_no_use_are_taken_away_twice_and_the_optimum_stays(crowd):
    base, _, sizes = crowd
    problem = StepProblem.now(base, [len(sizes)] * len(base), sizes)
    numbers = Numbers.of(problem)
    optimum, _ = exhaust(numbers, 10**7)[()]
    assert [elementary_bound(problem)] == lower_bounds(numbers) and elementary_bound(problem) <= optimum
    result = solve(problem, "search")
    assert (result.objective, result.bound) == (optimum, optimum)


def test_loads_that_leave_a_worker_no_use_for_its_slots():
    """Without the second worker, which has 8 and could take nothing, the others have 14; the plain bound is 13."""
    base, slots, ascending = np.array([3, 8, 4]), np.array([3, 3, 3]), np.array([6, 6, 10])
    assert slots_in_use(base, slots, ascending, 13).tolist() == [1, 0, 1]
    assert mean_bound(base, slots, ascending[::-1]) == 14
    assert solve(StepProblem.now(base, slots, ascending)).objective == 3 * 14 - 37


def test_counting_proves_what_slots_left_open():
    """Of 29 large jobs at least five machines hold five, or one holds six: 4,739 tokens."""
    for slots in (5, 30):
        problem = StepProblem.now([0] * 6, [slots] * 6, JOBS)
        result = solve(problem, effort=200_000)
        assert (result.objective, result.status, result.proof) == (619, "optimal", "elementary-bound")
        assert verify(problem, result).bound_established
    assert (619 + sum(JOBS)) / 6 == 4739


def test_five_large_requests_on_two_workers():
    """Three of them meet on one worker, so that it has 30 at least; the mean says 25."""
    assert counting_floor(np.array([0, 0]), np.array([5, 5]), np.array([10] * 5)) == 30
    assert counting_floor(np.array([0, 7]), np.array([5, 2]), np.array([10] * 5)) == 30
    assert counting_floor(np.array([3, 7]), np.array([5, 5]), np.array([10] * 5)) == 33
