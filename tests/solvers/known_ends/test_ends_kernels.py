"""The parts of the search over windows in which requests end, each against a naive twin or another engine."""

import itertools
import random

import numpy as np
import pytest
from scipy.optimize import linprog
from solvers.known_ends.ends_problems import random_ends

from lbopt import solve
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.known_ends.ascent import put_on_shares
from lbopt.kernels.known_ends.bounds import bound_of_all, cheapest_pattern, exact_bound
from lbopt.kernels.known_ends.placing import add_loads
from lbopt.kernels.known_ends.polish import polish, shake
from lbopt.kernels.known_ends.state import INFINITY
from lbopt.model import check_assignment, objective
from lbopt.solvers.elementary import greedy_assignment
from lbopt.solvers.exact.known_ends import Ascent, KnownEnds
from lbopt.solvers.exact.known_ends_search import Tree

pytestmark = pytest.mark.jit


def decisions(seed, count, **shape):
    rng = random.Random(seed)
    found = 0
    while found < count:
        decision = KnownEnds(random_ends(rng, **shape))
        if decision.fits:
            found += 1
            yield decision, rng


def patterns(decision, box, w):
    """All sets of classes that worker w may take, copies counted."""
    window = decision.window
    for chosen in itertools.combinations_with_replacement(range(window.n.size), int(window.slots[w])):
        count = np.bincount(chosen, minlength=window.n.size)
        chain = np.cumsum(count[::-1])[::-1]
        inside = (box.least[w] <= chain).all() and (chain <= box.most[w]).all()
        if (count <= window.n).all() and box.allowed[w][count > 0].all() and inside:
            yield chosen


def test_the_cheapest_pattern_is_found_under_all_counts():
    seen_empty = 0
    for decision, rng in decisions(1, 80, requests=6, slots=3):
        window, box = decision.window, decision.box()
        box.allowed[:] = np.array([rng.random() < 0.8 for _ in range(box.allowed.size)]).reshape(box.allowed.shape)
        for w in range(window.slots.size):
            j = rng.randrange(window.n.size)
            box.least[w, j] = rng.randint(0, 1)
            box.most[w, j] = max(box.least[w, j], rng.randint(0, int(window.slots[w])))
            value = np.array([rng.randint(-50, 50) for _ in range(window.n.size)])
            expected = min((int(value[list(one)].sum()) for one in patterns(decision, box, w)), default=INFINITY)
            found = cheapest_pattern(window, box, w, value, np.zeros(int(window.slots[w]) + 1, dtype=np.int64))
            assert found == expected
            seen_empty += expected == INFINITY
    assert seen_empty > 0


def test_no_prices_prove_more_than_the_optimum():
    for decision, rng in decisions(2, 60):
        window, prices = decision.window, decision.prices()
        best = solve(decision.problem, "brute-force").objective
        scale, G = int(window.scale), int(window.workers)
        for _ in range(10):
            shares = np.array([[rng.random() for _ in range(prices.pi.shape[1])] for _ in range(prices.pi.shape[0])])
            if (window.owner < window.slots.size).any():
                shares[-1] = 0  # no worker without free slots is as heavy
            prices.pi[:] = (shares / shares.sum(axis=0) * G * scale).astype(np.int64)
            prices.pi[0] += G * scale - prices.pi.sum(axis=0)
            for k in range(prices.mu.size):
                price = rng.randint(-200, 200) * scale
                prices.mu[k] = price if window.must[k] else min(0, price)
            bound = exact_bound(window, prices, decision.box())
            assert bound <= best
            assert bound_of_all(window, prices, NEVER) == bound
            assert bound_of_all(window, prices, 1) == -INFINITY


def test_prices_beyond_the_range_prove_nothing():
    decision, _ = next(decisions(3, 1))
    ascent = Ascent(decision)
    assert ascent.proved() > -INFINITY
    ascent.prices.mu[0] = -(1 << 61)
    assert exact_bound(decision.window, ascent.prices, decision.box()) == -INFINITY


def linear_program(decision):
    """The optimum of the linear program by another engine."""
    window = decision.window
    (W, T), K = window.peak.shape, window.n.size
    columns = W * K
    total = np.concatenate([np.tile(-window.total, W), np.full(T, window.workers)]).astype(float)
    envelopes = np.zeros((W * T, columns + T))
    for w in range(W):
        envelopes[w * T : (w + 1) * T, w * K : (w + 1) * K] = window.v.T
        envelopes[w * T : (w + 1) * T, columns:] = -np.eye(T)
    classes = np.zeros((K, columns + T))
    classes[:, :columns] = np.tile(np.eye(K), W)
    slots = np.zeros((W, columns + T))
    for w in range(W):
        slots[w, w * K : (w + 1) * K] = 1
    forced = window.must == 1
    answer = linprog(
        total,
        A_ub=np.concatenate([envelopes, classes[~forced]]),
        b_ub=np.concatenate([-window.peak.ravel(), window.n[~forced]]),
        A_eq=np.concatenate([slots, classes[forced]]),
        b_eq=np.concatenate([window.slots, window.n[forced]]),
    )
    return answer.fun + int(window.constant)


def test_the_root_is_the_linear_program_and_ascents_stay_below_it():
    reached = []
    for decision, _ in decisions(4, 60, workers=5, requests=12, horizon=6, slots=3, top=1000):
        exact = linear_program(decision)
        tree = Tree(decision, INFINITY >> 4, decision.draft().pattern)
        while tree.progress.bound == 0 and tree.advance(1_000_000) == 0 and tree.progress.bound == 0:
            pass
        assert tree.progress.bound <= np.ceil(exact - 1e-3) or tree.progress.bound == tree.progress.cost
        assert tree.progress.bound >= np.ceil(exact - 1e-3) - 1
        ascent = Ascent(decision)
        for _ in range(5):
            ascent.advance(int(exact) + 1, 100)
        assert ascent.proved() <= np.ceil(exact - 1e-3)
        reached.append(ascent.proved() >= 0.9 * exact - 1)
    assert np.mean(reached) > 0.7


def test_placements_are_those_of_greedy_and_exchanges_only_help():
    for decision, _ in decisions(5, 80, workers=5, requests=12, slots=3):
        problem, draft = decision.problem, decision.draft()
        costs = []
        for cost in decision.placements(draft):
            assignment = check_assignment(problem, decision.handed_out(draft.pattern))
            assert cost == objective(problem, assignment)
            costs.append(cost)
        assert min(costs) == objective(problem, greedy_assignment(problem))
        chance = np.array([1])
        for moves in (0, 1, 4):
            shake(decision.window, draft, draft.pattern.copy(), moves, chance)
            before = objective(problem, check_assignment(problem, decision.handed_out(draft.pattern)))
            add_loads(decision.window, draft)
            cost = polish(decision.window, draft, 10, NEVER)
            assert cost <= before
            assert cost == objective(problem, check_assignment(problem, decision.handed_out(draft.pattern)))


def test_shares_are_the_nearest_ones():
    rng = np.random.default_rng(6)
    for _ in range(50):
        column = rng.normal(0, 3, rng.integers(1, 9))
        found = column.copy()
        put_on_shares(found, 4.0)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(4)
        level = (column - found)[found > 0]
        assert level == pytest.approx(np.full(level.size, level[0]))
        assert (column[found == 0] <= level[0] + 1e-9).all()


@pytest.mark.parametrize("size", [1e6, 1e12, 1e17, 1e30])
def test_shares_of_far_away_columns_come_to_an_end(size):
    rng = np.random.default_rng(int(np.log10(size)))
    for _ in range(50):
        column = rng.normal(0, size, 6)
        column[1] = column[0]
        put_on_shares(column, 4.0)
        assert column.min() >= 0
        assert column.sum() == pytest.approx(4)
