"""The exact placements of a batch against every placement there is, and the rules against the optimum."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.prefill.exact import PrefillBatch, allocation_gaps, best_fill, fill_of, least_straggler, place_by


@st.composite
def small_batches(draw, most=6, units=3):
    D, n = draw(st.integers(1, units)), draw(st.integers(0, most))
    largest = draw(st.sampled_from([3, 12, 3000]))
    load = draw(st.lists(st.integers(0, 2 * largest), min_size=D, max_size=D))
    length = draw(st.lists(st.integers(1, largest), min_size=n, max_size=n))
    hits = None
    if draw(st.booleans()):
        hits = np.array([[draw(st.integers(0, l)) for _ in range(D)] for l in length], dtype=np.int64).reshape(n, D)  # noqa: E741
    pending = draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n))
    return PrefillBatch(load, length, hits, draw(st.integers(1, 2 * largest)), pending)


def every_placement(batch, first):
    """Yield the loads and the number of old requests placed, of each placement, counted from the definition."""
    n, D = batch.num_requests, batch.num_units
    for unit in product(range(first, D), repeat=n):
        loads = [int(batch.load[d]) for d in range(D)]
        for r, d in enumerate(unit):
            if d >= 0:
                loads[d] += int(batch.length[r]) - (int(batch.hits[r, d]) if batch.hits is not None else 0)
        yield loads, sum(1 for r, d in enumerate(unit) if d >= 0 and batch.pending[r])


def straggler_by_exhaustion(batch):
    return min(max(loads) for loads, _ in every_placement(batch, 0))


def fill_by_exhaustion(batch):
    def value(loads, old):
        over = sum(max(0, tokens - batch.chunk) for tokens in loads)
        return sum(loads) - over, -over, old

    filled, over, old = max(value(*one) for one in every_placement(batch, -1))
    return filled, -over, old


@given(small_batches())
@settings(max_examples=120, deadline=None)
def test_least_straggler(batch):
    found = least_straggler(batch)
    assert found.optimal
    assert found.straggler == straggler_by_exhaustion(batch) == max(batch.loads_after(found.unit))
    assert (found.unit >= 0).all()


@given(small_batches(most=5))
@settings(max_examples=80, deadline=None)
def test_best_fill(batch):
    found = best_fill(batch)
    assert found.optimal
    assert (found.filled, found.overshoot, found.pending) == fill_by_exhaustion(batch)


@pytest.mark.slow
@given(small_batches(most=8))
@settings(max_examples=100, deadline=None)
def test_eight_on_three(batch):
    assert least_straggler(batch).straggler == straggler_by_exhaustion(batch)
    found = best_fill(batch)
    assert (found.filled, found.overshoot, found.pending) == fill_by_exhaustion(batch)


RULES = ("pbaa", "pbaa:cache=yes", "pbaa:printed=yes,cache=yes", "pbaa:whole=yes", "longest-first", "round-robin")


@given(small_batches())
@settings(max_examples=60, deadline=None)
def test_no_rule_is_better_than_the_optimum(batch):
    rows, placement, fill = allocation_gaps(batch, RULES)
    for row in rows:
        assert row.straggler >= row.least_straggler == placement.straggler
        assert row.filled <= row.most_filled == fill.filled
        assert row.filled < fill.filled or row.overshoot >= fill.overshoot
        assert row.straggler_gap >= 0 and row.fill_gap >= 0


def test_where_the_greedy_is_not_best():
    rows, placement, _ = allocation_gaps(PrefillBatch([0, 0], [3, 3, 2, 2, 2], chunk=6))
    assert placement.straggler == 6
    assert {row.rule: row.straggler for row in rows} == {"pbaa": 7, "longest-first": 7, "round-robin": 7}
    assert rows[0].straggler_gap == pytest.approx(1 / 6)


def test_caches_decide_where():
    batch = PrefillBatch([0, 572], [2000, 900, 600], [[0, 1500], [0, 0], [0, 0]], chunk=3072)
    assert place_by(batch, "pbaa:cache=yes", 3072, 3).tolist() == [1, 0, 0]
    found = least_straggler(batch)
    assert (found.straggler, found.optimal) == (1500, True)


@pytest.mark.jit
@pytest.mark.slow  # what is proved in some seconds on a machine of one's own may not be on a busy one
def test_a_batch_of_a_real_size():
    rng = np.random.default_rng(8)
    batch = PrefillBatch(rng.integers(0, 500, 8), rng.integers(1, 3073, 24), chunk=3072)
    placement, fill = least_straggler(batch, time_limit=30), best_fill(batch, time_limit=2)
    assert placement.optimal and placement.proof != "claimed:cp-sat"
    assert fill.filled == fill.bounds[0] == 8 * 3072
    assert fill.overshoot == sum(batch.loads_after(fill.unit)) - 8 * 3072


@pytest.mark.parametrize("seed", range(4))
def test_cut_short_it_still_bounds_the_rules(seed):
    rng = np.random.default_rng(seed)
    batch = PrefillBatch(rng.integers(0, 500, 8), rng.integers(1, 2000, 20), chunk=3072)
    fill = best_fill(batch, time_limit=1e-4)
    rules = [fill_of(batch, place_by(batch, rule, batch.chunk, 20)) for rule in RULES]
    assert all(filled <= fill.bounds[0] for filled, _, _ in rules)
    assert (fill.filled, -fill.overshoot) >= (rules[0][0], -rules[0][1]), "PBAA is where it starts"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"load": []}, "load has no entries"),
        ({"length": [0, 1]}, r"length\[0\] is 0"),
        ({"length": [2**50, 1]}, "tokens in all; expected below 2"),
        ({"chunk": 0}, "chunk is 0"),
        ({"hits": [[0]]}, r"hits have shape \(1, 1\); expected \(2, 2\)"),
        ({"pending": [True]}, "pending must have shape"),
    ],
)
def test_bad_batches(given, says):
    with pytest.raises(InputError, match=says):
        PrefillBatch(**{"load": [0, 0], "length": [5, 6]} | given)


def test_beyond_the_range_of_the_solver():
    with pytest.raises(InputError, match="count in blocks of tokens"):
        best_fill(PrefillBatch([0, 0], [5, 6]))
    with pytest.raises(InputError, match=r"unit\[1\] is 2; expected 0 to 1, or -1"):
        PrefillBatch([0, 0], [5, 6]).loads_after([0, 2])
