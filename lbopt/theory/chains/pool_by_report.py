"""Slots that a pool fills when a report shows them free: reports of every T steps, requests without end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pool_by_report(output: NDArray[np.int64], slots: int, period: int, steps: int, seed: int) -> NDArray[np.float64]:
    """Return the share of busy slots in every step, float64 (steps,).

    Parameters
    ----------
    output
        int64 (n,), tokens, that lives are drawn from.
    slots
        How many.
    period
        Steps between reports; the first is in step 0.
    steps
        Steps that are read.
    seed
        Of the draws.
    """
    draw = np.random.default_rng(seed)
    left = np.zeros(slots, np.int64)
    busy = np.zeros(steps)
    for k in range(steps):
        left = np.maximum(left - 1, 0)
        if k % period == 0:
            free = np.flatnonzero(left == 0)
            left[free] = output[draw.integers(0, output.size, free.size)]
        busy[k] = np.count_nonzero(left) / slots
    return busy
