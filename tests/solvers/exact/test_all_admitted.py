"""Steps that admit all requests, and cold starts: against exhaustion, on the published files, and at their size."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt import Result, StepProblem, solve, verify
from lbopt.instances.families import generate
from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.draw import new_dice
from lbopt.kernels.partition.few_workers import BUDGET, FOUND, NONE, fits
from lbopt.kernels.partition.trades import trade_down
from lbopt.model import check_assignment, objective
from lbopt.solvers.budget import Limits
from lbopt.solvers.certificates.few_workers import refuted
from lbopt.solvers.elementary import elementary_bound
from lbopt.solvers.exact.balance import Balancing, mean_bound
from lbopt.solvers.exact.search import by_prices
from lbopt.solvers.recount import Numbers

pytestmark = pytest.mark.jit


@st.composite
def placements(draw):
    """Loads, slots and sizes; all requests fit."""
    top = draw(st.sampled_from([3, 20, 1000, 10**6, 2**40]))
    slots = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any))
    base = draw(st.lists(st.integers(0, top), min_size=len(slots), max_size=len(slots)))
    if draw(st.booleans()):
        base = [base[0]] * len(base)
    sizes = draw(st.lists(st.integers(0, top), min_size=1, max_size=min(7, sum(slots))))
    return base, slots, sizes


def least_maximum(base, slots, sizes):
    """The least largest load, by trying every placement."""
    best = None
    for workers in itertools.product(range(len(base)), repeat=len(sizes)):
        if all(workers.count(g) <= c for g, c in enumerate(slots)):
            loads = list(base)
            for g, s in zip(workers, sizes, strict=True):
                loads[g] += s
            best = max(loads) if best is None else min(best, max(loads))
    return best


@settings(max_examples=120, deadline=None)
@given(placements())
def test_solve_finds_and_proves_the_least_maximum(placement):
    base, slots, sizes = placement
    problem = StepProblem.now(base, slots, sizes)
    best = least_maximum(base, slots, sizes)
    result = solve(problem, "search", time_limit=120)  # the first one compiles
    assert result.proved
    assert result.objective == len(base) * best - sum(base) - sum(sizes)
    assert verify(problem, result).bound_established


@settings(max_examples=200, deadline=None)
@given(placements())
def test_bounds_are_bounds(placement):
    base, slots, sizes = placement
    best = least_maximum(base, slots, sizes)
    level = mean_bound(np.array(base), np.array(slots), -np.sort(-np.array(sizes)))
    assert level <= best
    cost = len(base) * level - sum(base) - sum(sizes)
    bound = elementary_bound(StepProblem.now(base, slots, sizes))
    assert cost <= bound <= len(base) * best - sum(base) - sum(sizes)


@settings(max_examples=200, deadline=None)
@given(placements(), st.integers(-2, 2))
def test_two_enumerations_agree(placement, offset):
    """The kernel's and the verifier's; both against the true least maximum, and the masks are a placement."""
    base, slots, sizes = placement
    best = least_maximum(base, slots, sizes)
    target = best + offset
    told = refuted(Numbers([[a] for a in base], slots, [[s] for s in sizes], [False] * len(sizes)), target, 10**6)
    assert told == (offset < 0)
    if target < max(base):
        return
    size = -np.sort(-np.array(sizes))
    rank = sorted((g for g, c in enumerate(slots) if c), key=lambda g: (base[g], slots[g]))
    lack, free = np.array([target - base[g] for g in rank]), np.array([slots[g] for g in rank])
    masks = np.zeros(len(rank), np.int64)
    budget = record(BUDGET)
    budget.limit = 10**9
    answer = fits(size, lack, free, budget, masks)
    assert answer == (NONE if offset < 0 else FOUND)
    if answer == FOUND:
        members = [[p for p in range(size.size) if mask >> p & 1] for mask in masks.tolist()]
        assert sorted(itertools.chain(*members)) == list(range(size.size))
        assert all(size[m].sum() <= a and len(m) <= c for m, a, c in zip(members, lack, free, strict=True))


@pytest.mark.more
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 12), st.sampled_from([5, 300, 10**5, 10**9]))
def test_balancing_keeps_the_rules_whatever_it_reaches(seed, workers, each, top):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, top, workers * each)
    slots = np.full(workers, each) + rng.integers(0, 2, workers)
    base = rng.integers(0, top, workers) if seed % 2 else np.zeros(workers, np.int64)
    search = Balancing(base, slots, sizes, Limits())
    for _ in search.longest_first():
        pass
    for _, _ in zip(range(3), search.fill_to_targets(), strict=False):
        pass
    load = base.copy()
    np.add.at(load, search.assignment, sizes)
    assert search.bound <= load.max() == search.max_load
    assert (np.bincount(search.assignment, minlength=workers) <= slots).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(1, 8), st.sampled_from([2, 60, 10**4, 10**9]))
def test_trades_keep_counts_and_never_add_to_the_excess(seed, workers, each, top):
    """Every worker keeps as many requests, loads are those of the assignment, and excesses only fall."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, top + 1, workers * each)
    base = rng.integers(0, top + 1, workers)
    assignment = rng.permutation(np.repeat(np.arange(workers), each))
    load = base.copy()
    np.add.at(load, assignment, sizes)
    target = -(-int(load.sum()) // workers)
    before = int(np.maximum(load - target, 0).sum())
    trade_down(sizes, target, 1_000_000, load, assignment, new_dice(seed), NEVER)
    counted = base.copy()
    np.add.at(counted, assignment, sizes)
    assert (np.bincount(assignment, minlength=workers) == each).all()
    assert (counted == load).all()
    assert np.maximum(load - target, 0).sum() <= before


def test_seven_numbers_a_worker_reach_the_mean():
    """10,000 numbers up to 100,000 on 1,417 workers: swaps of single ones leave hundreds of tokens, trades none."""
    sizes = np.random.default_rng(31).integers(1, 100_001, 10_000)
    result = solve(StepProblem.now([0] * 1417, [8] * 1417, sizes), "search", time_limit=60)
    assert result.proved
    assert result.objective == -int(sizes.sum()) % 1417


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("numbers", "workers", "top"),
    [(1_000, 100, 10**4), (1_000, 100, 10**6), (1_000, 10, 10**9), (10_000, 1_000, 10**6), (700, 189, 10**4)],
)
def test_the_class_of_the_published_files_is_proved(numbers, workers, top):
    rng = np.random.default_rng(numbers + top)
    problem = StepProblem.now([0] * workers, [-(-numbers // workers)] * workers, rng.integers(1, top + 1, numbers))
    result = solve(problem, "search", time_limit=60)
    assert result.proved
    assert verify(problem, result, exhaust_limit=0).bound_established


@pytest.mark.more
def test_the_published_files_are_proved(shared_dir):
    for path in sorted((shared_dir / "data" / "bmnp").glob("*.json")):
        data = json.loads(path.read_text())
        problem = StepProblem.now([0] * data["workers"], [data["slots"]] * data["workers"], data["sizes"])
        result = solve(problem, "search", time_limit=60)
        assert result.proved
        assert np.bincount(result.assignment, weights=data["sizes"]).max() == data["optimum_max_load"]


@pytest.mark.parametrize("waiting", [0, 1, 300])
@pytest.mark.parametrize("workers", [4, 144])
def test_cold_starts_are_balanced_to_the_token(workers, waiting):
    """As many requests as slots, and more; some of them forced."""
    sizes = generate("burstgpt-like", workers * 72 + waiting, seed=4).prompt
    problem = StepProblem.now([0] * workers, [72] * workers, sizes, must_admit=np.arange(sizes.size) % 7 == 0)
    result = solve(problem, "search", time_limit=20)
    assert result.proved
    assert result.objective < workers
    assert verify(problem, result, exhaust_limit=0).bound_established


def test_warm_workers_and_a_long_queue():
    rng = np.random.default_rng(3)
    problem = StepProblem.now(rng.integers(0, 3_000, 16), [20] * 16, rng.integers(1, 900, 500))
    result = solve(problem, "search", time_limit=20)
    assert (result.objective, result.proved) == (0, True)
    check_assignment(problem, result.assignment)
    assert objective(problem, result.assignment) == 0


def test_three_workers_and_thirty_numbers_of_sixteen_bits():
    rng = np.random.default_rng(7)
    for n in (20, 30):
        problem = StepProblem.now([0] * 3, [n] * 3, rng.integers(1, 2**16, n))
        result = solve(problem, "search", time_limit=20)
        assert result.proved
        assert verify(problem, result, exhaust_limit=0).bound_established


def test_a_false_exhaustion_is_refuted():
    from solvers.stated import stated

    from lbopt import CertificateError

    problem = StepProblem.now([0] * 3, [20] * 3, np.random.default_rng(7).integers(1, 2**16, 20))
    result = solve(problem, "search")
    assert result.proof == "exhaustion"
    worse = result.assignment.copy()
    loads = np.bincount(worse, weights=problem.work[:, 0])
    worse[np.flatnonzero(worse != loads.argmax())[0]] = loads.argmax()
    false = stated(
        problem,
        worse,
        bound=objective(problem, worse),
        proof="exhaustion",
        stop_reason="proved",
        solver="exact",
        seconds=0.1,
    )
    with pytest.raises(CertificateError, match="is wrong: loads of at most"):
        verify(problem, false, exhaust_limit=0)


@pytest.mark.more
def test_an_enumeration_that_a_limit_ends_has_a_bound_that_verify_takes():
    """It raises the bound level by level; the result of such a search, which is open, was refused."""
    rng = random.Random(11)
    sizes = [rng.choice([0, 3 * 2**40]) if rng.random() < 0.1 else rng.randint(1, 2**40) for _ in range(32)]
    problem = StepProblem.now([0, 2**40, 2**39], [11, 11, 10], sizes)
    result = solve(problem, "search", effort=150_000)
    assert (result.status, result.proof) == ("feasible", "search")
    assert verify(problem, Result.from_json(result.to_json())).objective_exact


def test_prices_alone_never_hand_out_what_is_not_there():
    """At an envelope of 0 nothing fits, and a column that stands for nobody is no pattern."""
    problem = StepProblem.now([0] * 4, [40] * 4, np.random.default_rng(1).integers(2**30, 2**31, 40))
    ticks = itertools.count()
    answer = by_prices(problem, None, Limits(lambda: None if next(ticks) < 40 else 0.0))
    value = objective(problem, check_assignment(problem, answer.assignment))
    assert answer.bound <= value


@pytest.mark.more
def test_empty_workers_and_the_others_cannot_carry_all():
    """More workers than requests: the best placement leaves workers out, whose room the next target would need.

    With less than no slack the walk over the last workers went on for ever.
    """
    base = 4_000_000 + 7919 * np.arange(32) % 1_700_000
    balancing = Balancing(base, np.full(32, 31), 150_000 + 1000 * np.arange(31), Limits())
    for _ in balancing.longest_first():
        pass
    filling = balancing.fill_to_targets()
    for _ in range(50):
        next(filling, None)
        assert balancing.max_load >= balancing.bound


def test_a_decode_step_ends_in_time():
    """The case in which it was found: 31 requests on 32 units, weighted by count and by tokens."""
    path = Path(__file__).parent / "sparse_step.json"
    problem = StepProblem.from_dict(json.loads(path.read_text()))
    result = solve(problem, "search", time_limit=0.5)
    assert result.stop_reason == "time" or result.proved
    assert verify(problem, result).objective_exact
