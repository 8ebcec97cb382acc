"""Blocks of prompts: which requests keep theirs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.model import RequestPrefixes, Trace

TOLD = RequestPrefixes(block_tokens=4, first=np.array([0, 2, 2, 5]), blocks=np.array([7, 9, 7, 8, 3]))


def lists(prefixes: RequestPrefixes) -> list[list[int]]:
    return [
        prefixes.blocks[a:b].tolist()
        for a, b in zip(prefixes.first.tolist(), prefixes.first.tolist()[1:], strict=False)
    ]


def test_requests_keep_their_blocks_in_any_order() -> None:
    assert lists(TOLD) == [[7, 9], [], [7, 8, 3]]
    assert lists(TOLD.of_requests(slice(1, 3))) == [[], [7, 8, 3]]
    assert lists(TOLD.of_requests(np.array([2, 0, 2]))) == [[7, 8, 3], [7, 9], [7, 8, 3]]
    assert lists(TOLD.of_requests(np.array([True, False, True]))) == [[7, 9], [7, 8, 3]]


def test_parts_and_draws_of_a_trace_keep_them() -> None:
    trace = Trace(prompt=np.array([8, 3, 12]), output=np.array([1, 2, 3]), prefixes=TOLD)
    part = trace.part(2, 3)
    assert part.prefixes is not None
    assert lists(part.prefixes) == [[7, 8, 3]]
    drawn = trace.resampled(5, seed=1)
    rows = np.random.default_rng(1).choice(3, 5, replace=True)
    assert drawn.prefixes is not None
    assert lists(drawn.prefixes) == [lists(TOLD)[row] for row in rows]
    assert trace.digest == Trace(prompt=trace.prompt, output=trace.output).digest


def test_only_full_blocks_count() -> None:
    """Prompts of 7, 3 and 12 tokens fill 1, 0 and 3 blocks of 4; 3, 7 and 8 are numbered from 0."""
    first, blocks, different = TOLD.full_blocks(np.array([7, 3, 12]))
    assert first.tolist() == [0, 1, 1, 4]
    assert blocks.tolist() == [1, 1, 2, 0]
    assert different == 3


def test_what_does_not_add_up_is_refused() -> None:
    with pytest.raises(InputError, match="blocks of 1 requests do not add up to the 3 there are"):
        RequestPrefixes(block_tokens=4, first=np.array([0, 2]), blocks=np.array([1, 2, 3]))
    with pytest.raises(InputError, match="blocks of prefixes have 0 tokens; expected at least 1"):
        RequestPrefixes(block_tokens=0, first=np.array([0]), blocks=np.zeros(0, dtype=int))
    with pytest.raises(InputError, match="has 2 requests, and prefixes of 3"):
        Trace(prompt=np.array([1, 2]), output=np.array([1, 1]), prefixes=TOLD)
