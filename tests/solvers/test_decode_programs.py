"""The exact decode programs against every placement there is, and worked examples."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide
from lbopt.solvers.decode import (
    DecodeBatch,
    barrier_time,
    count_then_load,
    fewest_requests_first,
    least_largest_count,
    level_then_load,
    water_level,
)

MASKED = DecodeBatch([2, 2, 3, 1, 2], [40, 20, 30, 200, 10], [8, 5, 3])
EMPTY = DecodeBatch([0, 0], [0, 0], [19, 18, 13, 12, 10])


@st.composite
def decode_batches(draw):
    N, m = draw(st.integers(1, 4)), draw(st.integers(0, 5))
    largest = draw(st.sampled_from([3, 20, 3000]))

    def numbers(most, size, least=0):
        return draw(st.lists(st.integers(least, most), min_size=size, max_size=size))

    room = draw(st.none() | st.just([draw(st.integers(0, 3)) for _ in range(N)]))
    if room is not None:
        room[0] += max(0, m - sum(room))
    return DecodeBatch(numbers(4, N), numbers(2 * largest, N), numbers(largest, m), room)


def outcomes(batch):
    """Yield (counts, loads) of each placement, counted from the definition."""
    for unit in product(range(batch.count.size), repeat=batch.length.size):
        if any(unit.count(i) > free for i, free in enumerate(batch.room.tolist())):
            continue
        counts, loads = batch.count.tolist(), batch.load.tolist()
        for tokens, i in zip(batch.length.tolist(), unit, strict=True):
            counts[i] += 1
            loads[i] += tokens
        yield counts, loads


@given(decode_batches())
@settings(max_examples=100, deadline=None)
def test_largest_count_then_largest_load(batch):
    found = count_then_load(batch)
    best = min((max(counts), max(loads)) for counts, loads in outcomes(batch))
    assert (least_largest_count(batch), found.value) == best
    assert found.optimal
    assert (max(batch.counts_after(found.unit)), max(batch.loads_after(found.unit))) == best


@given(decode_batches())
@settings(max_examples=100, deadline=None)
def test_level_counts_then_largest_load(batch):
    found = level_then_load(batch)
    best = min((sorted(counts, reverse=True), max(loads)) for counts, loads in outcomes(batch))
    assert found.optimal
    assert (sorted(batch.counts_after(found.unit), reverse=True), max(batch.loads_after(found.unit))) == best
    w, extra = water_level(batch)
    lids = list(zip(batch.count.tolist(), (batch.count + batch.room).tolist(), strict=True))
    assert sum(best[0]) == sum(min(max(count, w), lid) for count, lid in lids) + extra
    assert 0 <= extra < max(1, sum(count <= w < lid for count, lid in lids))
    greedy = batch.counts_after(fewest_requests_first(batch))
    assert sorted(greedy, reverse=True) == best[0], "Algorithm 3 without a mask levels the counts"


@given(decode_batches(), st.integers(0, 50), st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_barrier(batch, alpha, beta):
    found = barrier_time(batch, alpha, beta)
    best = min(
        max(alpha * b + beta * k for b, k in zip(counts, loads, strict=True)) for counts, loads in outcomes(batch)
    )
    assert found.optimal and found.value == best == batch.barrier_after(found.unit, alpha, beta)
    for other in (count_then_load(batch), level_then_load(batch)):
        assert batch.barrier_after(other.unit, alpha, beta) >= best


def test_a_unit_with_few_requests_and_a_high_load():
    first, second = count_then_load(MASKED), level_then_load(MASKED)
    assert (least_largest_count(MASKED), first.value) == (3, 200)
    assert sorted(MASKED.counts_after(second.unit)) == [2, 2, 3, 3, 3]
    assert second.value == 203
    assert MASKED.loads_after(by_policy(MASKED, "iqr")) == [43, 25, 30, 200, 18], "the mask leaves it out"


def test_greedy_and_exact():
    assert EMPTY.loads_after(fewest_requests_first(EMPTY)) == [41, 31]
    found = level_then_load(EMPTY)
    assert sorted(EMPTY.counts_after(found.unit)) == [2, 3]
    assert found.value == 37
    pairs = DecodeBatch([0, 0], [0, 0], [6, 5, 4, 3])
    assert max(pairs.loads_after(fewest_requests_first(pairs))) == level_then_load(pairs).value == 9


def by_policy(batch, policy):
    N, m = batch.count.size, batch.length.size
    nobody, since = np.zeros(N, dtype=np.int64), np.zeros(m, dtype=np.int64)
    seen = Observation(0, 0.0, batch.load, batch.room, batch.count, nobody, nobody, batch.length, since, np.arange(m))
    return decide(make_policy(policy), seen)


def test_the_rule_and_its_counterparts_by_their_barriers():
    placed = [by_policy(MASKED, "iqr"), count_then_load(MASKED).unit, level_then_load(MASKED).unit]
    barriers = [MASKED.barrier_after(unit, 20, 1) for unit in placed]
    assert barriers[2] == 203 + 20 * 2
    assert min(barriers) == barrier_time(MASKED, 20, 1).value == 220


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"count": [0]}, "count has 1 entries, load 2 and room 1"),
        ({"room": [1]}, "load 2 and room 1"),
        ({"length": [3, 3], "room": [0, 1]}, "room is for 1 requests in all; expected at least the 2 of length"),
        ({"load": [2**50, 0]}, "expected below 2"),
    ],
)
def test_bad_batches(given, says):
    with pytest.raises(InputError, match=says):
        DecodeBatch(**{"count": [0, 0], "load": [0, 0], "length": [1]} | given)


def test_bad_weights():
    with pytest.raises(InputError, match="alpha is -1; expected a whole number of 0 or more"):
        barrier_time(EMPTY, -1, 1)
