"""A run as the exact search reads it: chains of requests that share a worker, and windows of time.

*Chains.* Let all slots be in use before a step and in it, and let one request start there. It takes the slot of the one
that has just ended, on whichever worker that is: the two are on one worker in every placement, and so is the whole
chain of such requests. What is left to choose is the worker of each chain. Where starts do not coincide these are
little more than G B, however long the run; where many requests start together, hardly any are tied.

*Windows.* Time is cut into windows. The barriers of a window add up to at least the largest token sum of a worker, and
to that sum where one worker is the heaviest all along: so it is between two events of a full fleet, where all loads
grow alike. The least sum of these largest sums is a lower bound of the run. Where a placement that reaches it costs
more, time is cut wherever its heaviest worker changes, and the bound is asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbopt.hindsight.timetable import IntArray, Timetable


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """The chains of a timetable.

    Parameters
    ----------
    timetable
        The run.
    of
        int64 (N,), the chain of each request; chains are numbered by their first requests.
    start, end
        int64 (n,), the first step of each chain, and the step after its last one.
    crowded
        int64 (R,), steps in which more than B chains run, of which a worker can then have B: those in which they are
        not the same as before.
    """

    timetable: Timetable
    of: IntArray
    start: IntArray
    end: IntArray
    crowded: IntArray

    def tokens(self, cuts: IntArray) -> IntArray:
        """Return the tokens that each chain shows in each of the windows between these steps, (n, C)."""
        table, low = self.timetable, cuts[:-1]
        steps, age = np.diff(cuts), low[None, :] - table.start[:, None]
        runs = (age >= 0) & (cuts[None, 1:] <= table.end[:, None])
        shown = np.where(runs, (table.prompt[:, None] + age) * steps + steps * (steps - 1) // 2, 0)
        added = np.zeros((self.start.size, low.size), dtype=np.int64)
        np.add.at(added, self.of, shown)
        return added

    def running(self, step: int) -> IntArray:
        """Return the chains that run in a step."""
        return np.flatnonzero((self.start <= step) & (self.end > step))

    def workers_of(self, worker: IntArray) -> IntArray:
        """Return the worker of each chain in a placement of the requests, numbered in the order of their first use."""
        chains = np.zeros(self.start.size, dtype=np.int64)
        chains[self.of] = worker
        _, first, named = np.unique(chains, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[named]


def chained(timetable: Timetable) -> Chains:
    """Return the chains of a timetable."""
    full, running = timetable.num_workers * timetable.slots_per_worker, timetable.running()
    of, crowded = np.arange(timetable.num_requests), []
    for k in np.unique(timetable.start).tolist():
        begun = np.flatnonzero(timetable.start == k)
        if begun.size == 1 and k > 0 and running[k - 1] == running[k] == full:
            of[begun] = of[timetable.end == k]
        elif running[k] > timetable.slots_per_worker:
            crowded.append(k)
    heads, of = np.unique(of, return_inverse=True)
    end = np.zeros(heads.size, dtype=np.int64)
    np.maximum.at(end, of, timetable.end)
    return Chains(timetable, of, timetable.start[heads], end, np.array(crowded, dtype=np.int64))


def events(timetable: Timetable) -> IntArray:
    """Return the steps in which requests start or have just ended, ascending, the step after the last one included."""
    return np.unique(np.concatenate([timetable.start, timetable.end]))


def finer(timetable: Timetable, cuts: IntArray, worker: IntArray) -> IntArray:
    """Return the cuts with those between which one worker of a placement is the heaviest all along."""
    heaviest = timetable.loads(worker).argmax(axis=1)
    changes = np.flatnonzero(np.diff(heaviest)) + 1
    return np.union1d(cuts, changes[changes > cuts[0]])
