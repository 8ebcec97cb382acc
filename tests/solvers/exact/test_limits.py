"""What ends a search early: work, a target, a distance from the bound, a cancelled event, a deadline; and who hears.

How long a solve takes is measured by `python -m solvers.reliability.overshoot`, not here: no test asks a clock.
"""

import threading

import numpy as np
import pytest

from lbopt import InputError, StepProblem, solve, verify
from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import HAS_CLOCK, NEVER, now, out_of_time, passed
from lbopt.kernels.search.state import KNOWN, OPEN
from lbopt.model import check_assignment, objective
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.search import by_prices
from lbopt.solvers.exact.workspace import what_is_known

pytestmark = pytest.mark.jit


def fleet(G: int, N: int, most: int, seed: int = 1) -> StepProblem:
    """Workers with some free slots each, and more requests than those; sizes spread as real ones do."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.lognormal(6.5, 1.2, N).astype(int) + 1, 60_000)
    return StepProblem.now(rng.integers(20_000, 60_000, G), rng.integers(1, most + 1, G), sizes)


KINDS = {
    "now": fleet(24, 200, 3),
    "all admitted": StepProblem.now([0] * 8, [12] * 8, np.random.default_rng(2).integers(1, 10**9, 90)),
    "window": StepProblem.survives(
        [20_000 + 811 * g for g in range(24)], [2] * 24, np.arange(60) * 37 % 991 + 1, 6, active=list(range(24))
    ),
    "departures": StepProblem.known_ends(
        *([20_000 + 811 * g for g in range(24)], [2] * 24, np.arange(60) * 37 % 991 + 1, np.arange(60) % 7 + 1),
        *(6,),
        active=list(range(24)),
    ),
}


@pytest.mark.parametrize("budget", [1, 37, 500, 10**9])
def test_slices_change_nothing(budget):
    """Pricing and dives are taken up where they were left: the course is the same however the work is cut."""
    answers = []
    for slice_of_work in (budget, 10**9):
        problem = fleet(48, 400, 3, seed=4)
        decision = Decision(problem)
        _, cost = decision.first_assignment()
        search = decision.start(cost)
        state, slices = OPEN, 0
        while state == OPEN and int(search.known.work) < 60_000:
            state = decision.advance(search, min(slice_of_work, 60_000 - int(search.known.work)))
            slices += 1
        known = what_is_known(search)
        answers.append((state, known.cost, known.bound, known.prices, known.work))
        assert (slices > 1) == (slice_of_work < 10_000)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("kind", KINDS)
def test_effort_ends_every_search_alike(kind):
    problem = KINDS[kind]
    results = [solve(problem, "search", effort=2_000) for _ in range(2)]
    assert results[0].assignment.tolist() == results[1].assignment.tolist()
    assert (results[0].objective, results[0].bound) == (results[1].objective, results[1].bound)
    assert results[0].stop_reason in ("effort", "proved")
    assert verify(problem, results[0]).bound_established


def test_effort_is_kept_where_one_restricted_program_takes_seconds():
    """The work within one pricing is booked as it is done: the search does not run on to its end."""
    problem = fleet(256, 2_000, 4)
    decision = Decision(problem)
    _, cost = decision.first_assignment()
    search = decision.start(cost)
    decision.advance(search, 1)  # the first prices, which are found in one go
    done = [int(search.known.work)]
    while len(done) < 41 and decision.advance(search, 5_000) == OPEN:
        done.append(int(search.known.work))
    assert len(done) == 41, "it is far from its end"
    assert max(np.diff(done)) < 60_000


@pytest.mark.parametrize("most", [1, 3_000, 100_000])
def test_effort_is_kept_within_the_first_prices_too(most):
    """They take seconds here: what is part of them looks at the work that is done."""
    problem = fleet(256, 2_000, 4)
    decision = Decision(problem)
    _, cost = decision.first_assignment()
    search = decision.start(cost, most=most)
    assert decision.advance(search, 10**9) == OPEN
    assert most <= int(search.known.work) < most + 60_000
    assert 0 <= int(search.known.bound) <= int(search.known.cost) <= cost


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_is_enough(kind):
    problem = KINDS[kind]
    best = solve(problem, "search", time_limit=1)
    enough = 3 * best.objective + 10**9
    result = solve(problem, "search", target=enough)
    assert result.objective <= enough
    assert result.stop_reason in ("target", "proved")
    within = solve(problem, "search", gap=enough)
    assert within.gap <= enough
    assert within.stop_reason in ("target", "proved")
    for one in (result, within):
        assert verify(problem, one).bound_established


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_solve_keeps_what_it_has(kind):
    cancel = threading.Event()
    cancel.set()
    result = solve(KINDS[kind], "search", cancel=cancel)
    check_assignment(KINDS[kind], result.assignment)
    assert result.stop_reason in ("cancelled", "proved", "searched")
    assert verify(KINDS[kind], result).bound_established


def test_another_thread_cancels_it():
    cancel, told = threading.Event(), []

    def heard(progress):
        told.append(progress)
        cancel.set()

    result = solve(fleet(64, 800, 3), "search", cancel=cancel, callback=heard)
    assert result.stop_reason == "cancelled"
    assert len(told) <= 2  # what came of it is told, too


@pytest.mark.parametrize("kind", KINDS)
def test_the_callback_hears_better_and_better(kind):
    told = []
    result = solve(KINDS[kind], "search", time_limit=1, callback=told.append)
    costs = [one.objective for one in told if one.objective is not None]
    assert costs == sorted(costs, reverse=True)
    assert [one.bound for one in told] == sorted(one.bound for one in told)
    assert all(one.bound <= result.objective for one in told)
    assert (told[-1].objective, told[-1].bound) == (result.objective, result.bound)
    assert [one.work for one in told] == sorted(one.work for one in told)
    assert [one.seconds for one in told] == sorted(one.seconds for one in told)


def test_what_the_callback_raises_ends_the_solve():
    def fails(progress):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        solve(KINDS["now"], "search", callback=fails)


@pytest.mark.parametrize("kind", KINDS)
def test_no_time_at_all_has_an_answer(kind):
    problem = KINDS[kind]
    result = solve(problem, "search", time_limit=1e-9)
    assert objective(problem, result.assignment) == result.objective
    assert result.stop_reason in ("time", "proved")


def test_seeds_draw_otherwise_and_prove_the_same():
    problem = fleet(24, 120, 3)
    results = [solve(problem, "search", seed=seed, time_limit=20) for seed in range(4)]
    proved = {result.objective for result in results if result.proved}
    assert len(proved) == 1
    assert (
        solve(problem, "search", seed=3, effort=3_000).objective
        == solve(problem, "search", seed=3, effort=3_000).objective
    )


def test_a_search_beyond_its_deadline_ends_with_what_it_has():
    problem = fleet(64, 800, 3)
    decision = Decision(problem)
    assignment, cost = decision.first_assignment()
    search = decision.start(cost)
    decision.advance(search, 0)
    assert decision.advance(search, 10**12, now() - 1) == (OPEN if HAS_CLOCK else decision.advance(search, 0))
    known = what_is_known(search)
    assert known.cost <= objective(problem, assignment)
    if HAS_CLOCK:
        assert known.expired
        assert known.work < 10**6


def test_the_clock_of_compiled_code():
    if HAS_CLOCK:
        assert passed(now() - 1)
    assert not passed(NEVER)
    assert not passed(now() + 10**12)
    limits = record(KNOWN)
    assert not out_of_time(limits)
    limits.deadline = 1
    assert bool(out_of_time(limits)) == HAS_CLOCK
    limits.deadline = now() + 10**12
    assert bool(out_of_time(limits)) == HAS_CLOCK, "once noted it stays"


def test_limits_by_themselves():
    ticks = iter([5.0, 1.0, -1.0])
    limits = Limits(lambda: next(ticks), effort=10, target=3, gap=1)
    assert limits.reached(0, cost=9, bound=1) is None
    assert limits.reached(10, cost=9, bound=1) == "effort"
    assert limits.reached(0, cost=9, bound=1) == "time"
    assert limits.reached(0, cost=3, bound=0) == "target"
    assert limits.reached(0, cost=9, bound=8) == "target"
    assert Limits().deadline() == NEVER
    assert Limits(lambda: 10.0).leaving(4.0).remaining() == 6.0
    assert by_prices(KINDS["now"], None, Limits(effort=1)).stop in ("effort", "done")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"effort": 0}, "effort is 0; expected a whole number of 1 or more, or None"),
        ({"target": 1.5}, "target is 1.5; expected a whole number"),
        ({"gap": -1}, "gap is -1; expected a whole number of 0 or more"),
        ({"cancel": True}, "cancel is a bool; expected a threading.Event"),
        ({"callback": 3}, "callback is a int; expected a function"),
        ({"effort": 5, "solver": "highs"}, "effort is for solver='exact' and 'search', not for 'highs'"),
    ],
)
def test_what_cannot_be_used_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        solve(KINDS["now"], **given)


def test_many_slots_and_sparse_sizes_keep_the_limit():
    """The search for a worker's best pattern went down and up for ever where no way down led to a pattern."""
    rng = np.random.default_rng([332, 16])
    sizes = np.minimum(rng.lognormal(6.5, 1.2, 300).astype(int) + 1, 60_000)
    for seed in range(6):
        draw = np.random.default_rng(seed)
        problem = StepProblem.now(draw.integers(20_000, 60_000, 16), draw.integers(0, 17, 16), sizes)
        result = solve(problem, "search", effort=20_000)
        assert result.stop_reason in ("effort", "proved")


def test_workers_far_apart_with_many_slots():
    """The lists of subsets were written beyond their end: four workers, sixteen slots, thousands of requests."""
    rng = np.random.default_rng(5020)
    sizes = np.minimum(rng.lognormal(6.5, 1.2, 5_000).astype(int) + 1, 60_000)
    loads = rng.integers(20_000, 60_000, 4)
    slots = rng.integers(0, 17, 4)
    slots[rng.integers(4)] = 16
    problem = StepProblem.now(loads, slots, sizes)
    check_assignment(problem, solve(problem, "search", effort=300_000).assignment)
