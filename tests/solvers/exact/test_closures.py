"""The log of a search is its proof: what the checker's kernels accept, the checker in plain Python accepts, too."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt import StepProblem
from lbopt.exceptions import CertificateError
from lbopt.kernels.checking.priced import Priced, exceeds, grouped, sums_of_least
from lbopt.solvers.budget import Limits
from lbopt.solvers.certificates import check
from lbopt.solvers.exact.search import search_exactly

STEPS = 60


def drawn(seed: int) -> StepProblem:
    """A step with or without a choice, of repeated or wide sizes, some of which must be admitted; 4 to 60 requests."""
    rng = np.random.default_rng([47, seed])
    G, N = int(rng.integers(2, 12)), int(rng.integers(4, 60))
    slots = rng.integers(0, 6, G)
    slots[0] += 1
    top = int(rng.choice([6, 40, 400, 9_000]))
    sizes = rng.integers(1, top, N) if seed % 3 else np.rint(rng.pareto(1.2, N) * 20 + 1).astype(np.int64)
    loads = rng.integers(0, 2 * top * 3, G)
    must = np.zeros(N, dtype=bool)
    if seed % 5 == 0:
        must[: min(3, int(slots.sum()))] = True
    return StepProblem.now(loads, slots, sizes, must_admit=must)


def log_of(problem):
    answer = search_exactly(problem, None, Limits(effort=400_000))
    return answer.closures if answer.stop == "done" and answer.proof == "certificate" else None


def one_that_holds():
    problem = StepProblem.now(
        [900, 700, 400, 650], [2, 3, 2, 1], [310, 260, 151, 120, 80, 433, 95, 277, 199, 34, 68, 512]
    )
    return problem, log_of(problem)


@pytest.mark.parametrize("seed", range(STEPS))
def test_what_the_kernels_accept_the_checker_accepts(seed):
    problem = drawn(seed)
    log = log_of(problem)
    if log is not None and log.hold(problem):
        assert check(problem, log.certificate(problem)) == log.bound


def test_most_logs_hold():
    logs = [(problem, log) for problem in map(drawn, range(STEPS)) if (log := log_of(problem)) is not None]
    assert len(logs) > STEPS // 3
    assert sum(log.hold(problem) for problem, log in logs) > 0.8 * len(logs)


@pytest.mark.parametrize("seed", range(0, STEPS, 4))
def test_a_forged_log_that_is_accepted_is_true(seed):
    """Bounds too high, ranges left out or moved, prices changed: the kernels accept what the checker accepts alone."""
    problem, rng = drawn(seed), np.random.default_rng([48, seed])
    log = log_of(problem)
    if log is None or not log.hold(problem):
        return  # how many hold is asked above
    assert not replace(log, bound=log.bound + 1).hold(problem), "the optimum itself costs no more"
    for _ in range(60):
        nodes, prices = log.nodes.copy(), log.prices.copy()
        kind = int(rng.integers(4))
        if kind == 0 and len(nodes):
            nodes = np.delete(nodes, rng.integers(len(nodes)), axis=0)
        elif kind == 1 and len(nodes):
            nodes[rng.integers(len(nodes)), rng.integers(2)] += int(rng.integers(-3, 4))
        elif kind == 2 and prices.size:
            prices[rng.integers(prices.shape[0]), rng.integers(prices.shape[1])] += int(rng.integers(-5_000, 5_000))
        elif prices.size:
            prices[rng.integers(prices.shape[0])] = 0
        forged = replace(log, nodes=nodes, prices=prices)
        if forged.hold(problem):
            assert check(problem, forged.certificate(problem)) == log.bound


def test_huge_numbers_and_slots_are_left_to_the_other_checker():
    problem, log = one_that_holds()
    assert log is not None and log.hold(problem)
    assert not replace(log, scale=1 << 58).hold(problem)
    many = StepProblem.now([0, 0], [1 << 40, 1], [1, 2, 3])
    assert not replace(log).hold(many)


def test_a_plain_bound_above_the_optimum_fails_in_both():
    problem, log = one_that_holds()
    high = replace(log, bound=log.bound + 1)
    assert not high.hold(problem)
    with pytest.raises(CertificateError):
        check(problem, high.certificate(problem))


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 25), min_size=3, max_size=9),
    worth=st.lists(st.integers(-40, 40), min_size=9, max_size=9),
    slots=st.integers(1, 5),
    room=st.integers(0, 80),
    known=st.integers(-60, 60),
)
def test_the_best_profit_is_that_of_all_sets(sizes, worth, slots, room, known):
    """The kernel against every set of requests; equal sizes have one price."""
    sizes = np.sort(np.array(sizes, dtype=np.int64))
    if slots > sizes.size:
        slots = sizes.size
    v, n, forced = np.zeros((3, sizes.size), dtype=np.int64)
    K = grouped(sizes, np.zeros_like(sizes), v, n, forced)
    v, n = v[:K], n[:K]
    price = np.array(worth[:K], dtype=np.int64)
    scale = 2
    profit = scale * v - price
    top = np.array([max(range(k + 1), key=lambda j: (profit[j], -j)) for k in range(K)], dtype=np.int64)
    lightest, caps, dues = np.zeros((3, slots + 1), dtype=np.int64)
    sums_of_least(v, n, 1, lightest)
    sums_of_least(profit, n, -1, caps)
    sums_of_least(price, n, 1, dues)
    each = [k for k in range(K) for _ in range(n[k])]
    for q in range(slots + 1):
        assert lightest[q] == sum(sorted(v[each].tolist())[:q])
        assert caps[q] == sum(sorted(profit[each].tolist(), reverse=True)[:q])
        assert dues[q] == sum(sorted(price[each].tolist())[:q])
    best = max(
        (int(profit[list(s)].sum()) for s in combinations(each, slots) if v[list(s)].sum() <= room), default=None
    )
    if room < lightest[slots]:
        assert best is None
        return
    path, steps = np.zeros((3, slots + 1), dtype=np.int64), np.array([1 << 40])
    priced = Priced(v, n, forced, profit, top, lightest, caps, dues, path, steps, scale)
    found = exceeds(priced, slots, room, known)
    assert found == max(known, best)
    steps[0] = 1
    few = exceeds(priced, slots, room, known)
    assert few >= max(known, best)
