"""The pricing of patterns beside a twin that lists every pattern; what is kept between calls is never stale."""

from itertools import combinations

import numpy as np
import pytest

from lbopt.kernels.search.pattern import smallest_sums
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.terms import EXACT, GLANCE, NONE, QUICK, ROUGH, Step
from lbopt.solvers.exact.workspace import workspace

SCALE = 16


def random_step(rng: np.random.Generator) -> Step:
    """Up to four open workers of up to four slots, up to eight size classes."""
    W, K = int(rng.integers(1, 5)), int(rng.integers(2, 9))
    v = np.sort(rng.choice(60, K, replace=False)).astype(np.int64)
    n = rng.integers(0, 4, K)
    n[0] += 4  # enough for whoever has room
    slots, load = np.sort(rng.integers(1, 5, W)), rng.integers(0, 40, W)
    sums = np.zeros(int(slots[-1]) + 1, dtype=np.int64)
    smallest_sums(v, n, sums)
    facts = np.array([W, int(load.sum()), int(load.max()), SCALE, 0, 0])
    return Step(v=v, n=n, floor=np.zeros_like(v), load=load, slots=slots, rank=np.lexsort((-load, slots)), sums=sums,
                facts=facts)  # fmt: skip


def naive_bound(step: Step, price: np.ndarray, M: int) -> int:
    """scale * bound, from the definition: every set of requests that a worker could take."""
    requests = [k for k, copies in enumerate(step.n.tolist()) for _ in range(copies)]
    v, p = step.v.tolist(), (SCALE * step.v - price).tolist()
    total = int((step.n * price).sum())
    for load, slots in zip(step.load.tolist(), step.slots.tolist(), strict=True):
        fitting = [
            sum(p[k] for k in taken) for taken in combinations(requests, slots) if load + sum(v[k] for k in taken) <= M
        ]
        if not fitting:
            return NONE
        total += max(fitting)
    return total


@pytest.mark.parametrize("seed", range(4))
def test_every_effort_bounds_what_exhaustion_finds(seed):
    """EXACT is the maximum itself, the others are not below it; other steps and prices were asked before."""
    rng = np.random.default_rng(seed)
    search, _ = workspace(4, 8, 4)
    for _ in range(60):
        step = random_step(rng)
        for _ in range(2):
            price = (rng.integers(0, 2, step.v.size) * rng.integers(0, SCALE * step.v + 2)).astype(np.int64)
            search.price[: price.size] = price
            for M in rng.integers(0, 160, 3).tolist():
                bounds = [evaluate(step, search, M, effort) for effort in (GLANCE, ROUGH, QUICK, EXACT)]
                assert bounds[3] == naive_bound(step, price, M)
                assert all(bound >= bounds[3] for bound in bounds)


def test_prices_asked_about_fewer_requests_are_not_those_before():
    """A dive asks the same prices about what is left: no list may outlive the requests that it was made of."""
    rng = np.random.default_rng(9)
    search, _ = workspace(4, 8, 4)
    for _ in range(40):
        step = random_step(rng)
        search.price[: step.v.size] = rng.integers(0, 300, step.v.size)
        price = search.price[: step.v.size].copy()
        for _ in range(3):
            assert evaluate(step, search, 120, EXACT) == naive_bound(step, price, 120)
            left = step.n.copy()
            left[int(rng.integers(1, left.size))] = 0
            fields = ("v", "floor", "load", "slots", "rank", "facts")
            sums = np.zeros_like(step.sums)
            smallest_sums(step.v, left, sums)
            step = Step(n=left, sums=sums, **{name: getattr(step, name) for name in fields})
