"""The lists of patterns near the best one, beside every pattern that there is."""

import random
from itertools import combinations_with_replacement

import numpy as np
import pytest

from lbopt.kernels.search.near_optimal import list_all
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, NONE
from lbopt.model import StepProblem
from lbopt.solvers.exact.decision import Decision

MOST = 1000


def all_patterns(step, price: list[int], M: int, w: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return (profit, classes largest first) of every pattern that fits worker w under envelope M."""
    v, n, c, room = step.v.tolist(), step.n.tolist(), int(step.slots[w]), M - int(step.load[w])
    profit = [step.scale * size - cost for size, cost in zip(v, price, strict=True)]
    return [
        (sum(profit[k] for k in rising), rising[::-1])
        for rising in combinations_with_replacement(range(len(v)), c)
        if sum(v[k] for k in rising) <= room and all(rising.count(k) <= n[k] for k in rising)
    ]


@pytest.mark.parametrize("slots", [(1, 2), (3,), (2, 4), (5,)])
def test_lists_hold_what_loses_no_more_than_the_budget_and_nothing_else(slots):
    """In the order of loss, then of classes, largest first."""
    rng = random.Random(sum(slots))
    listed = 0
    while listed < 40:
        top = rng.choice([6, 40])
        free = [rng.choice(slots) for _ in range(2)]
        sizes = [rng.randint(0, top) for _ in range(rng.randint(sum(free), 9 + sum(free)))]
        decision = Decision(StepProblem.now([rng.randint(0, top) for _ in free], free, sizes))
        search, step = decision.start(1 << 40), decision.step
        price = [rng.choice([0, rng.randint(0, step.scale * size // 2 + 1)]) for size in step.v.tolist()]
        search.price[: len(price)] = price
        M = rng.randint(0, 3 * top)
        if evaluate(step, search, M, EXACT) == NONE:
            continue
        listed += 1
        budget = rng.choice([0, rng.randint(0, 2 * step.scale), 20 * top * step.scale])
        search.profit[:] = -7  # of other prices, for what is asked here
        rows = list_all(step, search, M, budget, MOST)
        assert rows == max(0, *search.last[: step.load.size].tolist())
        for w, c in enumerate(step.slots.tolist()):
            best = max(all_patterns(step, price, M, w))[0]
            expected = [(best - profit, classes) for profit, classes in all_patterns(step, price, M, w)]
            expected = [(loss, [-k for k in classes]) for loss, classes in expected if loss <= budget]
            if search.first[w] < 0:
                assert len(expected) > MOST
                continue
            mine = range(search.first[w], search.last[w])
            found = [(int(search.loss[j]), (-search.items[j, :c]).tolist()) for j in mine]
            assert found == sorted(expected)


def test_a_worker_with_more_such_patterns_than_wanted_has_no_list():
    """Nor has one of more slots than are ever listed; what a list may hold at most it does hold."""
    for slots, patterns in ((1, 5), (2, 10), (3, 10)):
        decision = Decision(StepProblem.now([0, 0], [slots, 7], [1, 2, 3, 4, 5, *[20] * 7]))
        search, step = decision.start(1 << 40), decision.step
        search.price[: step.v.size] = 0
        evaluate(step, search, 3 * 5, EXACT)
        search.bound[:2] = 0  # profits are sizes: every pattern gains on this
        counts = step.n.copy()
        for most in (patterns, patterns - 1):
            rows = list_all(step, search, 15, 0, most)
            assert rows == (patterns if most == patterns else 0)
            assert search.first[:2].tolist() == ([0, -1] if most == patterns else [-1, -1])
            assert search.last[:2].tolist() == ([patterns, -1] if most == patterns else [-1, -1])
        search.bound[:2] = 16 * step.scale
        assert list_all(step, search, 15, 0, patterns) == 0  # a list of nothing, not no list
        assert search.first[:2].tolist() == search.last[:2].tolist() == [0, -1]
        assert np.array_equal(step.n, counts)
