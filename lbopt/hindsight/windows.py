"""Time cut into windows in which no request starts or ends: what each request shows in a window altogether.

If every worker holds the same number of requests throughout a window, all loads grow alike, the heaviest worker stays
the heaviest, and the sum of the barriers in the window is the largest of the workers' token sums. Elsewhere this
largest sum is a lower bound, since a sum of maxima is at least the largest sum; windows are then cut finer, down to
single steps, where it is exact again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lbopt.hindsight.bounds import events, step_bounds
from lbopt.hindsight.timetable import Timetable

IntArray = NDArray[np.int64]

#: Windows that steps with empty slots are cut into, about.
FINE = 160


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """A timetable in windows.

    Parameters
    ----------
    cuts
        int, (C + 1,): first step of each window, and the step after the last one.
    tokens
        int, (N, C): tokens that each request shows in a window, summed over its steps.
    floor
        int, (C,): least sum of the barriers in the window, from the bounds of its steps.
    first, last
        int, (N,): first window of each request, and the window after its last one.
    exact
        Whether the largest token sum of a worker in a window is the sum of the barriers there, in every window.
    """

    cuts: IntArray
    tokens: IntArray
    floor: IntArray
    first: IntArray
    last: IntArray
    exact: bool

    @property
    def totals(self) -> IntArray:
        """Return the tokens of all requests in each window, (C,)."""
        return np.asarray(self.tokens.sum(axis=0), dtype=np.int64)


def cut(timetable: Timetable, fine: int = FINE) -> Windows:
    """Cut a timetable at its events, and finer where slots are empty.

    Parameters
    ----------
    timetable
        The run.
    fine
        Windows that steps with empty slots are cut into, about; where there are fewer such steps, each is a window.
    """
    if timetable.num_requests == 0:
        none = np.zeros(0, dtype=np.int64)
        return Windows(np.zeros(1, dtype=np.int64), np.zeros((0, 0), dtype=np.int64), none, none, none, True)
    marks, running = events(timetable), timetable.running()
    full = timetable.num_workers * timetable.slots_per_worker
    loose = sum(int(b - a) for a, b in pairwise(marks) if 0 < running[a] < full)
    length = max(1, -(-loose // fine))
    cuts: list[int] = []
    exact = True
    for a, b in pairwise(marks.tolist()):
        if running[a] == 0 or running[a] == full:
            cuts.append(a)
        else:
            cuts.extend(range(a, b, length))
            exact = exact and (length == 1 or b - a == 1)
    edges = np.array([*cuts, int(marks[-1])], dtype=np.int64)
    low, high = edges[:-1], edges[1:]
    steps = high - low
    age = low[None, :] - timetable.start[:, None]
    runs = (age >= 0) & (high[None, :] <= timetable.end[:, None])
    tokens = np.where(runs, (timetable.prompt[:, None] + age) * steps + steps * (steps - 1) // 2, 0)
    floor = np.add.reduceat(step_bounds(timetable), low)
    return Windows(
        edges,
        np.ascontiguousarray(tokens),
        floor,
        np.searchsorted(edges, timetable.start),
        np.searchsorted(edges, timetable.end),
        exact,
    )
