"""Blocks of time for a bootstrap: what happens in one stretch of time shares its fate, so whole stretches are drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCKS = 40


def drawn_blocks(
    when: NDArray[np.float64], draws: int, seed: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.float64]]:
    """Return the rows of each block, and how often each draw has each block, float64 (draws, blocks).

    Parameters
    ----------
    when
        (n,), times; blocks are of equally many neighbours in time, at most `BLOCKS` of them.
    draws, seed
        Number of draws, and their seed.
    """
    order = np.argsort(when, kind="stable")
    blocks = [rows for rows in np.array_split(order, BLOCKS) if rows.size]
    count = len(blocks)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), draws)
    return blocks, drawn.astype(np.float64)
