"""Kernels of leximax against loop-only twins."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.leximax.even import compared, even_out, sort_up, water
from lbopt.kernels.leximax.lists import CHOICE, Choice, Lists, list_patterns

pytestmark = pytest.mark.more

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=4), st.integers(0, 30))
def test_water_is_the_least_vector_in_the_boxes(boxes, total):
    low = np.array([a for a, _ in boxes])
    high = np.array([a + b for a, b in boxes])
    out = np.zeros(low.size, dtype=np.int64)
    filled = water(low, high, total, out)
    points = [
        p for p in itertools.product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))) if sum(p) == total
    ]
    assert filled == bool(points)
    if filled:
        assert tuple(sorted(out, reverse=True)) == min(tuple(sorted(p, reverse=True)) for p in points)
        assert (low <= out).all() and (out <= high).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.data())
def test_comparing_is_that_of_words(first, data):
    second = data.draw(st.lists(st.integers(0, 5), min_size=len(first), max_size=len(first)))
    one, two = sorted(first, reverse=True), sorted(second, reverse=True)
    expected = (one > two) - (one < two)
    assert compared(np.array(sorted(first)), np.array(two)) == expected


@settings(deadline=None)
@given(seeds)
def test_lists_hold_every_pattern_in_the_window_once(seed):
    rng = np.random.default_rng(seed)
    v = np.unique(rng.integers(0, 40, rng.integers(1, 7)))
    n, c, base = rng.integers(0, 3, v.size), int(rng.integers(1, 5)), int(rng.integers(0, 9))
    p = rng.integers(-20, 30, v.size)
    low, high = sorted(rng.integers(0, 100, 2).tolist())
    need = int(rng.integers(-50, 40))
    lists = Lists(*np.zeros((len(Lists._fields), 1), dtype=np.int64))._replace(
        v=v, profit=p, base=np.array([base]), slots=np.array([c]), items=np.zeros((2000, c), dtype=np.int64)
    )
    choice = Choice(record(CHOICE), *np.zeros((len(Choice._fields) - 1, 1), dtype=np.int64))._replace(avail=n.copy())
    two = {name: np.zeros((1, 1), dtype=np.int64) for name in ("begin", "end", "answer")}
    end = list_patterns(lists, choice._replace(**two), 0, base + low, base + high, need, 0)
    expected = {
        pattern
        for pattern in itertools.combinations_with_replacement(range(v.size - 1, -1, -1), c)
        if all(pattern.count(k) <= n[k] for k in pattern)
        and low <= v[list(pattern)].sum() <= high
        and p[list(pattern)].sum() >= need
    }
    found = [tuple(row) for row in lists.items[:end].tolist()]
    assert len(found) == len(set(found)) and set(found) == expected
    assert (choice.avail == n).all()


@settings(deadline=None)
@given(seeds)
def test_exchanges_keep_the_requests_and_lower_the_loads(seed):
    rng = np.random.default_rng(seed)
    W, Q = int(rng.integers(1, 6)), 4
    v = np.unique(rng.integers(0, 50, 12))
    slots = rng.integers(1, Q + 1, W)
    held = np.zeros((W, Q), dtype=np.int64)
    for w in range(W):
        held[w, : slots[w]] = np.sort(rng.integers(0, v.size, slots[w]))
    base = rng.integers(0, 80, W)
    after = base + np.array([v[held[w, : slots[w]]].sum() for w in range(W)])
    before = sorted(after.tolist(), reverse=True)
    pool = sorted(k for w in range(W) for k in held[w, : slots[w]].tolist())
    even_out(v, slots, held, after, 10**7, NEVER)
    assert sorted(after.tolist(), reverse=True) <= before
    assert sorted(k for w in range(W) for k in held[w, : slots[w]].tolist()) == pool
    assert after.tolist() == [int(base[w] + v[held[w, : slots[w]]].sum()) for w in range(W)]
    for a, b in itertools.permutations(range(W), 2):  # no exchange of one request helps any more
        for x, y in itertools.product(held[a, : slots[a]], held[b, : slots[b]]):
            assert max(after[a] - v[x] + v[y], after[b] + v[x] - v[y]) >= max(after[a], after[b])


@settings(deadline=None)
@given(st.lists(st.integers(-9, 9), max_size=40))
def test_sorting_carries_the_companion_along(values):
    keys, companion = np.array(values, dtype=np.int64), np.arange(len(values))
    sort_up(keys, companion)
    assert keys.tolist() == sorted(values)
    assert [values[j] for j in companion] == keys.tolist()
