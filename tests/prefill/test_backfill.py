"""Backfill against its definition on lists, and what it is for: short prompts do not wait behind long ones for ever."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.rules import many
from naive.backfill import backfill as naive_backfill

from lbopt.exceptions import InputError
from lbopt.kernels.prefill.codes import KEEP
from lbopt.prefill import PrefillRequests, PrefillSetting, make_allocation, simulate_prefill
from lbopt.prefill.allocations import place


@st.composite
def queues(draw):
    """Queues of one instance: loads, prompts, hits."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, D, chunk = draw(st.integers(1, 30)), draw(st.integers(1, 4)), draw(st.sampled_from([3, 8, 20]))
    length = rng.integers(1, draw(st.sampled_from([4, 13, 50])), m)
    hits = rng.integers(0, length[:, None, None] + 1, (m, 1, D)) if draw(st.booleans()) else np.zeros((0, 0, 0), int)
    return rng.integers(0, draw(st.sampled_from([1, chunk, 2 * chunk])), D), length, hits, chunk


@given(queues(), st.sampled_from([0, 0.5, 1, 100]), st.booleans())
@settings(max_examples=many(400, 100))
def test_as_defined(queue, split, tops_up):
    load, length, hits, chunk = queue
    before, cached = load.copy(), hits[:, 0, :] if hits.size else None
    rule = make_allocation(f"backfill:split={split}")
    unit = place(rule, load, length, chunk, cached, tops_up=tops_up)

    cost = (length[:, None] - (hits[:, 0, :] if hits.size else np.zeros((1, load.size), np.int64))).tolist()
    expected = naive_backfill(before.tolist(), length.tolist(), cost, chunk, np.inf if tops_up else split)
    assert [None if d == KEEP else d for d in unit.tolist()] == expected
    for k, d in enumerate(expected):
        if d is not None:
            before[d] += cost[k][d]
    assert load.tolist() == before.tolist()


def test_the_oldest_go_first_and_short_ones_fill_the_rest():
    """Units of ten: 6 and 7 are the batch with 5 before the others, 4 and 3 fill up, 8 has to wait."""
    requests = PrefillRequests([0.0] * 6, [6, 7, 5, 8, 4, 3])
    run = simulate_prefill(
        requests, PrefillSetting(1, 2, "anticipating", "backfill:split=9", chunk_tokens=10, phases=(1.0,)), seed=0
    )
    first = run.requests["began"] == run.requests["began"].min()
    assert first.tolist() == [True, True, False, False, True, True]
    assert run.requests["unit"][first].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(("length", "fits"), [(25, True), (26, False), (5, True), (6, False), (15, True), (16, False)])
def test_more_than_a_chunk_needs_room_for_its_end_alone(length, fits):
    """25 tokens in chunks of 10 take three passes from a unit with 5 left free too."""
    load = np.array([5])
    unit = place(make_allocation("backfill:split=9"), load, np.array([length]), 10)
    assert (unit[0] == 0) == fits
    assert load.tolist() == [5 + length * fits]


def test_no_such_split():
    with pytest.raises(InputError, match="split is -1"):
        make_allocation("backfill:split=-1")
