"""The pricing of patterns beside a twin that lists every pattern; what is kept between calls is never stale."""

from itertools import combinations

import numpy as np
import pytest

from lbopt.kernels.deadline import NEVER
from lbopt.kernels.search.assembled import best_three
from lbopt.kernels.search.pattern import prefix_best, smallest_sums
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, GLANCE, NONE, QUICK, ROUGH, Step
from lbopt.kernels.search.tables import one_more, tabulate_pairs
from lbopt.solvers.exact.workspace import workspace


def random_step(rng: np.random.Generator, scale: int) -> Step:
    """Up to four open workers of up to four slots, up to eight size classes."""
    W, K = int(rng.integers(1, 5)), int(rng.integers(2, 9))
    v = np.sort(rng.choice(60, K, replace=False)).astype(np.int64)
    n = rng.integers(0, 4, K)
    n[0] += 4  # enough for whoever has room
    slots, load = np.sort(rng.integers(1, 5, W)), rng.integers(0, 40, W)
    sums = np.zeros(int(slots[-1]) + 1, dtype=np.int64)
    smallest_sums(v, n, sums)
    return Step(
        v=v,
        n=n,
        floor=np.zeros_like(v),
        load=load,
        slots=slots,
        rank=np.lexsort((-load, slots)),
        sums=sums,
        workers=W,
        total=int(load.sum()),
        heaviest=int(load.max()),
        scale=scale,
        most=0,
        forced=0,
    )


def naive_bound(step: Step, price: np.ndarray, M: int) -> int:
    """scale * bound, from the definition: every set of requests that a worker could take."""
    requests = [k for k, copies in enumerate(step.n.tolist()) for _ in range(copies)]
    v, p = step.v.tolist(), (step.scale * step.v - price).tolist()
    total = int((step.n * price).sum())
    for load, slots in zip(step.load.tolist(), step.slots.tolist(), strict=True):
        fitting = [
            sum(p[k] for k in taken) for taken in combinations(requests, slots) if load + sum(v[k] for k in taken) <= M
        ]
        if not fitting:
            return NONE
        total += max(fitting)
    return total


@pytest.mark.parametrize("scale", [1, 2, 16])
@pytest.mark.parametrize("seed", range(4))
def test_every_effort_bounds_what_exhaustion_finds(seed, scale):
    """EXACT is the maximum itself, the others are not below it; other steps and prices were asked before."""
    rng = np.random.default_rng(seed)
    search, _ = workspace(4, 8, 4)
    for _ in range(120):
        step = random_step(rng, scale)
        for _ in range(2):
            price = (rng.integers(0, 2, step.v.size) * rng.integers(0, scale * step.v + 2)).astype(np.int64)
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
        step = random_step(rng, 16)
        search.price[: step.v.size] = rng.integers(0, 300, step.v.size)
        price = search.price[: step.v.size].copy()
        for _ in range(3):
            assert evaluate(step, search, 120, EXACT) == naive_bound(step, price, 120)
            left = step.n.copy()
            left[int(rng.integers(1, left.size))] = 0
            sums = np.zeros_like(step.sums)
            smallest_sums(step.v, left, sums)
            step = Step(**{name: getattr(step, name) for name in Step._fields} | {"n": left, "sums": sums})


@pytest.mark.parametrize("seed", range(3))
def test_three_requests_put_together_from_the_table_of_pairs(seed):
    """Exact, also where the best is one unit below the ceiling, which was once taken for no pattern at all."""
    rng = np.random.default_rng(seed)
    one_below = 0
    for _ in range(400):
        K = int(rng.integers(2, 7))
        v = np.sort(rng.choice(14, K, replace=False)).astype(np.int64)
        p, n = rng.integers(0, 8, K), rng.integers(1, 4, K)
        n[0] += 3
        margin = int(rng.integers(3 * v[0], 3 * v[-1] + 2))
        best, pairs, out, scratch = (np.zeros(size, dtype=np.int64) for size in (K, margin + 1, 3, K))
        prefix_best(K, p, n, best)
        assert tabulate_pairs(K, margin, v, p, n, pairs, NEVER)
        ceiling = one_more(margin, K, v, p, pairs)
        requests = [k for k, copies in enumerate(n.tolist()) for _ in range(copies)]
        worth = max(p[list(taken)].sum() for taken in combinations(requests, 3) if v[list(taken)].sum() <= margin)
        assert best_three(margin, ceiling, v, p, n, best, pairs, out, scratch) == worth
        assert p[out].sum() == worth
        assert v[out].sum() <= margin
        one_below += worth == ceiling - 1
    assert one_below > 3
