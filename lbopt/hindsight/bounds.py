"""What the barrier of one step is at least, whoever chooses the workers: bounds from the set that runs in the step.

The sizes in the step be a_1 >= a_2 >= ... >= a_n with total W. Each line is a lower bound on the barrier M:

- volume: M >= ceil(W / G), because the largest of G loads is at least their mean;
- pigeonhole: of the j G + 1 largest requests some worker holds j + 1, so M >= the j + 1 smallest of these together;
- company: no worker holds fewer than c = n - (G - 1) B requests, for the others hold B at most. So the worker of the
  largest request holds c - 1 more, and M >= a_1 + the c - 1 smallest.

Between two events the same requests run and each grows by one token a step, so they keep their order, and every one of
these bounds is a straight line in the step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.hindsight.timetable import Timetable

IntArray = NDArray[np.int64]


def events(timetable: Timetable) -> IntArray:
    """Return the steps in which requests start or have just ended, ascending, the step after the last one included."""
    return np.unique(np.concatenate([timetable.start, timetable.end]))


def step_bounds(timetable: Timetable) -> IntArray:
    """Return a lower bound on the barrier of each step, (K,)."""
    bound = np.zeros(timetable.num_steps, dtype=np.int64)
    marks = events(timetable)
    for low, high in zip(marks[:-1].tolist(), marks[1:].tolist(), strict=True):
        runs = (timetable.start <= low) & (timetable.end > low)
        if runs.any():
            sizes = np.sort(timetable.prompt[runs] + low - timetable.start[runs])[::-1]
            bound[low:high] = _of_stretch(sizes, high - low, timetable.num_workers, timetable.slots_per_worker)
    return bound


def _of_stretch(sizes: IntArray, steps: int, workers: int, slots: int) -> IntArray:
    """Return the bounds of steps in which `sizes` (descending at first) grow together."""
    step, count = np.arange(steps, dtype=np.int64), sizes.size
    best = -(-(int(sizes.sum()) + count * step) // workers)
    below = np.concatenate([[0], np.cumsum(sizes[::-1])])  # below[m]: the m smallest of all together
    for held in range(1, -(-count // workers) + 1):
        among = (held - 1) * workers + 1  # so many requests leave `held` of them on one worker
        heavy = int(sizes[among - held : among].sum())
        best = np.maximum(best, heavy + held * step)
    company = max(1, count - (workers - 1) * slots)
    lonely = int(sizes[0]) + int(below[company - 1])
    return np.maximum(best, lonely + company * step)
