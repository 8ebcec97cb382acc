"""Requests walked through their ages: the rows that predictors are trained and judged on.

A request of o output tokens gives a row at each age 0, stride, 2 stride, ... below o (BalanceRoute, section 4.2), as a
router meets it while it runs. Long requests give more rows than short ones, and so they do in a fleet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError

Ints = NDArray[np.int64]

#: Half a gigabyte of features with their copies; more is seldom meant.
MOST_ROWS = 5_000_000


def walk(outputs: Ints, stride: int) -> tuple[Ints, Ints]:
    """Return the request (its place in `outputs`, int64 (n,)) and the age of each row, by request, then by age."""
    if not 1 <= stride <= 2**31:
        raise InputError(f"stride is {stride}; expected at least 1 token between two ages")
    counts = -(-outputs // stride)
    total = int(counts.sum())
    if total > MOST_ROWS:
        raise InputError(
            f"{outputs.size} requests walked through their ages by {stride} tokens make {total} rows, more than "
            f"{MOST_ROWS}; use a larger stride or fewer requests"
        )
    requests = np.repeat(np.arange(outputs.size, dtype=np.int64), counts)
    within = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    return requests, within * stride
