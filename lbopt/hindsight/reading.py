"""A timetable as the kernels of the local search read it: forwards, or backwards in time.

Backwards, the last step is the first one. A request comes at its end, with the largest size that it has, s + o - 1,
gets smaller by a token a step, and leaves at its start. The same placement has the same loads in the same steps, so a
search may change the direction at any time.

Why both: a search that reads forwards ends in the drain, the steps after the last start, in which nothing comes any
more that could mend what earlier steps have left. Backwards the drain comes first, with free slots. What comes last is
the first step, in which most requests start together and end, read backwards, together: there is no drain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbopt.hindsight.timetable import IntArray, Timetable


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The requests in the order in which they come.

    Parameters
    ----------
    timetable
        What is read.
    growth
        Tokens by which a request grows a step: 1 forwards, -1 backwards.
    order
        int64 (N,), rows of the timetable in the order in which requests come.
    start, prompt, output
        int64 (N,), in that order: the step in which they come, the tokens in it, and the steps that they stay.
    """

    timetable: Timetable
    growth: int
    order: IntArray
    start: IntArray
    prompt: IntArray
    output: IntArray

    def workers_read(self, worker: IntArray) -> IntArray:
        """Return the workers of a placement in the order of the reading, (N,), a copy."""
        return worker[self.order]

    def placement(self, read: IntArray) -> IntArray:
        """Return the placement whose workers these are in the order of the reading, (N,)."""
        worker = np.empty_like(read)
        worker[self.order] = read
        return worker

    def steps_read(self, of_steps: IntArray) -> IntArray:
        """Return what steps have, (K,) or (K, G), in the order of the reading, a copy."""
        return of_steps[:: self.growth].copy()


def forwards(timetable: Timetable) -> Reading:
    """Return the timetable in the order of the starts."""
    order = np.arange(timetable.num_requests)
    return Reading(timetable, 1, order, timetable.start, timetable.prompt, timetable.output)


def backwards(timetable: Timetable) -> Reading:
    """Return the timetable in the order of the ends, the last one first."""
    order = np.argsort(-timetable.end, kind="stable")
    start = (timetable.num_steps - timetable.end)[order]
    return Reading(
        timetable, -1, order, start, (timetable.prompt + timetable.output - 1)[order], timetable.output[order]
    )
