"""The pricing of patterns beside a twin that lists every pattern; what is kept between calls is never stale."""

from itertools import combinations

import numpy as np
import pytest
from lengths import quick_and_long

from lbopt.kernels.search.pattern import smallest_sums
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, GLANCE, NONE, QUICK, ROUGH, Step
from lbopt.kernels.search.tables import COARSE, TABLE
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
        least=0,
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


def widened(step: Step, factor: int, rng: np.random.Generator) -> Step:
    """The same workers and requests, `factor` times as large and a little more, so that all digits matter."""
    if factor == 1:
        return step
    v = factor * step.v + rng.integers(0, factor // 2, step.v.size)
    load = factor * step.load
    sums = np.zeros_like(step.sums)
    smallest_sums(v, step.n, sums)
    changed = {"v": v, "load": load, "sums": sums, "floor": np.zeros_like(v)}
    changed |= {"total": int(load.sum()), "heaviest": int(load.max())}
    return Step(**{name: getattr(step, name) for name in Step._fields} | changed)


@pytest.mark.some(8)
@pytest.mark.parametrize("steps", quick_and_long(40, 120))
@pytest.mark.parametrize("factor", [1, 3000])
@pytest.mark.parametrize("scale", [1, 2, 16])
@pytest.mark.parametrize("seed", range(4))
def test_every_effort_bounds_what_exhaustion_finds(seed, scale, factor, steps):
    """EXACT is the maximum itself, the others are not below it; other steps and prices were asked before.

    With large numbers the tables count in grains of many tokens.
    """
    rng = np.random.default_rng(seed)
    search, _ = workspace(4, 8, 4)
    for _ in range(steps):
        step = widened(random_step(rng, scale), factor, rng)
        for _ in range(2):
            price = (rng.integers(0, 2, step.v.size) * rng.integers(0, scale * step.v + 2)).astype(np.int64)
            search.price[: price.size] = price
            for M in (factor * rng.integers(0, 160, 3)).tolist():
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


def naive_best(c: int, margin: int, v: list[int], p: list[int], n: list[int]) -> int | None:
    """The most profit of exactly c requests within a margin: by how many and how large they are, class after class."""
    best = {(0, 0): 0}
    for size, profit, copies in zip(v, p, n, strict=True):
        for (count, total), worth in list(best.items()):
            for more in range(1, min(copies, c - count) + 1):
                at = count + more, total + more * size
                if at[1] <= margin:
                    best[at] = max(best.get(at, NONE), worth + more * profit)
    return max((worth for (count, _), worth in best.items() if count == c), default=None)


@pytest.mark.parametrize(("c", "classes"), [(3, 40), (4, 40), (5, 30), (6, 30), (7, 16), (9, 16)])
def test_many_slots_are_priced_exactly(c, classes):
    """Where branching gives up, tables over tokens decide; one worker has hardly room, one has it for anything."""
    rng = np.random.default_rng(c)
    search, _ = workspace(4, 64, 9)
    for scale in (1, 16):
        v = np.sort(rng.choice(90, classes, replace=False)).astype(np.int64)
        n = rng.integers(0, 3, classes)
        n[:c] += 1
        sums = np.zeros(c + 1, dtype=np.int64)
        smallest_sums(v, n, sums)
        load = np.array([0, 55, 71, 300])
        step = Step(
            *(v, n, np.zeros_like(v), load, np.full(4, c), np.arange(4), sums),
            *(4, int(load.sum()), 300, scale, 0, 0, 0),
        )
        price = (scale * v // 2 + rng.integers(0, 8 * scale, classes)).astype(np.int64)
        search.price[:classes] = price
        M = 300 + int(sums[c])
        total = evaluate(step, search, M, EXACT)
        best = [naive_best(c, M - g, v.tolist(), (scale * v - price).tolist(), n.tolist()) for g in load.tolist()]
        assert search.bound[:4].tolist() == search.value[:4].tolist() == best
        assert total == sum(best) + (n * price).sum()
        for w in range(4):  # what is said to be worth that is a pattern, and is
            pattern = search.pattern[w, :c]
            assert (np.diff(pattern) <= 0).all()
            assert (np.bincount(pattern, minlength=classes) <= n).all()
            assert v[pattern].sum() <= M - load[w]
            assert (scale * v - price)[pattern].sum() == best[w]


@pytest.mark.parametrize(("c", "effort"), [(4, QUICK), (5, EXACT)])
def test_tables_end_where_they_end(c, effort):
    """One worker has a room of just as many tokens as a fine table reaches, one of more, and one is too full for it."""
    rng, classes = np.random.default_rng(c), 20
    search, _ = workspace(4, 64, 9)
    v = np.sort(rng.choice(range(TABLE // 8, TABLE // 3), classes, replace=False)).astype(np.int64)
    n = np.ones(classes, dtype=np.int64)
    sums = np.zeros(c + 1, dtype=np.int64)
    smallest_sums(v, n, sums)
    M = 2 * TABLE
    load = np.array([TABLE, *([TABLE - 1] if effort == QUICK else []), 2 * TABLE - int(sums[c])])
    workers = load.size
    step = Step(
        *(v, n, np.zeros_like(v), load, np.full(workers, c), np.arange(workers), sums),
        *(workers, int(load.sum()), int(load.max()), 1, 0, 0, 0),
    )
    search.price[:classes] = price = v - np.sort(rng.integers(0, 400, classes))  # so that many sets are nearly as good
    evaluate(step, search, M, effort)
    coarse = effort == QUICK  # the second worker's room is a token too many for grains of one token
    assert search.listed.reach == TABLE + coarse
    assert (search.listed.grain > 0) == coarse
    assert search.listed.reach >> search.listed.grain <= (COARSE if coarse else TABLE)
    best = [naive_best(c, M - g, v.tolist(), (v - price).tolist(), n.tolist()) for g in load.tolist()]
    value, bound = search.value[:workers].tolist(), search.bound[:workers].tolist()
    assert all(low <= exact <= high for low, exact, high in zip(value, best, bound, strict=True))
    assert effort == QUICK or value == best == bound
