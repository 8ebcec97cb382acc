"""Slots that a pool fills when a report shows them free: reports of every T steps, requests without end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.theory.chains.open_fleet import Requests


def pool_by_report(requests: Requests, slots: int, period: int, steps: int, seed: int) -> NDArray[np.float64]:
    """Return the share of busy slots in every step, float64 (steps,).

    Parameters
    ----------
    requests
        What the pool holds without end.
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
            left[free] = requests.drawn(free.size, draw)[1]
        busy[k] = np.count_nonzero(left) / slots
    return busy
