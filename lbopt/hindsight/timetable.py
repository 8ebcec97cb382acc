"""A timetable: when each request of a run starts and ends, with the workers still to be chosen.

Under first-come admission with all slots in use, *who* runs in which step does not depend on the rule: a slot becomes
free when a request ends, wherever that is, and the oldest waiting request takes it. What is left to a rule is the
worker. So a clairvoyant router chooses a worker for each interval [start, start + output), at most B on a worker in
any step, and the sum of the barriers, sum_k max_g L_g(k), is to be least. Request i shows a barrier the sizes s, s + 1,
..., s + o - 1 (loads before growth, as everywhere in `lbopt.simulator`). The sum of the loads does not depend on the
placement, so least barriers are least imbalance, sum_k (G max_g L_g(k) - sum_g L_g(k)).

A timetable that never holds more than G B requests always has a placement: intervals of which at most m overlap are
coloured with m colours in the order of their starts (interval graphs are perfect), and B colours make a worker.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import Trace

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Timetable:
    """Intervals of a run, in the order in which their requests start.

    Parameters
    ----------
    num_workers
        G, workers that meet at the barrier.
    slots_per_worker
        B, requests that a worker holds at most in a step.
    start
        int, (N,): step in which each request runs first, counted from 0, non-decreasing.
    prompt
        int, (N,): tokens that it shows in that step, s >= 0.
    output
        int, (N,): steps that it runs, o >= 1.
    """

    num_workers: int
    slots_per_worker: int
    start: IntArray
    prompt: IntArray
    output: IntArray

    def __post_init__(self) -> None:
        for name in ("start", "prompt", "output"):
            values = np.array(getattr(self, name), dtype=np.int64)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        if not self.start.shape == self.prompt.shape == self.output.shape or self.start.ndim != 1:
            raise InputError("start, prompt and output of a timetable are arrays of the same length, one row a request")
        if self.num_workers < 1 or self.slots_per_worker < 1:
            raise InputError(
                f"a fleet of {self.num_workers} x {self.slots_per_worker} slots runs nothing; expected 1 or more"
            )
        if (self.start < 0).any() or (np.diff(self.start) < 0).any():
            raise InputError("the starts of a timetable do not decrease and begin at 0 or later")
        if (self.prompt < 0).any() or (self.output < 1).any():
            raise InputError("a request of a timetable shows 0 tokens or more and runs 1 step or more")
        most = int(self.running().max(initial=0))
        if most > self.num_workers * self.slots_per_worker:
            raise InputError(
                f"{most} requests of the timetable run at once on {self.num_workers * self.slots_per_worker} slots"
            )

    @property
    def num_requests(self) -> int:
        """N."""
        return int(self.start.size)

    @property
    def end(self) -> IntArray:
        """Step after the last one of each request."""
        return self.start + self.output

    @property
    def num_steps(self) -> int:
        """K, steps until the last request has ended."""
        return int(self.end.max(initial=0))

    def running(self) -> IntArray:
        """Return the number of requests that run in each step, (K,)."""
        return _counted(self, np.zeros(self.num_requests, dtype=np.int64), 1)[:-1, 0]

    def held(self, worker: IntArray) -> IntArray:
        """Return the requests that each worker holds in each step, and in the step after the last one, (K + 1, G)."""
        return _counted(self, worker, self.num_workers)

    def totals(self) -> IntArray:
        """Return the tokens that all workers hold together in each step, (K,)."""
        together = np.zeros(self.num_requests, dtype=np.int64)
        return _summed(self, together, _counted(self, together, 1))[:, 0]

    def loads(self, worker: IntArray) -> IntArray:
        """Return the load of each worker in each step, (K, G).

        Parameters
        ----------
        worker
            int, (N,): worker of each request.

        Raises
        ------
        InputError
            Where a worker does not exist or holds more than B requests.
        """
        worker = np.asarray(worker, dtype=np.int64)
        if worker.shape != self.start.shape:
            raise InputError(f"{worker.size} workers for {self.num_requests} requests")
        if ((worker < 0) | (worker >= self.num_workers)).any():
            wrong = int(worker[(worker < 0) | (worker >= self.num_workers)][0])
            raise InputError(f"worker {wrong} does not exist; there are {self.num_workers}, counted from 0")
        held = self.held(worker)
        full = np.argwhere(held > self.slots_per_worker)
        if full.size:
            step, g = full[0]
            raise InputError(f"worker {g} holds more than {self.slots_per_worker} requests in step {step}")
        return _summed(self, worker, held)

    def barriers(self, worker: IntArray) -> int:
        """Return the sum of the heaviest loads over all steps, which a clairvoyant router makes least."""
        return int(self.loads(worker).max(axis=1).sum())

    def imbalance(self, worker: IntArray) -> int:
        """Return G times the sum of the heaviest loads, less the sum of all loads."""
        return self.num_workers * self.barriers(worker) - int(self.totals().sum())


def first_come(trace: Trace, num_workers: int, slots_per_worker: int) -> Timetable:
    """Return the timetable of a fleet that admits in the order of arrival as soon as a slot is free.

    All requests are there from the beginning. A request that runs for the last time in step k frees its slot for
    step k + 1.

    Parameters
    ----------
    trace
        Requests in the order in which they are admitted.
    """
    trace.refuse_eligibility("a whole run")
    start = np.zeros(trace.prompt.size, dtype=np.int64)
    ends: list[int] = []
    for row, output in enumerate(trace.output.tolist()):
        if len(ends) == num_workers * slots_per_worker:
            start[row] = heapq.heappop(ends)
        heapq.heappush(ends, int(start[row]) + output)
    return Timetable(num_workers, slots_per_worker, start, trace.prompt, trace.output)


def _counted(timetable: Timetable, worker: IntArray, num_workers: int) -> IntArray:
    """Return the number of requests on each worker in each step; the last row, after all ends, is 0."""
    change = np.zeros((timetable.num_steps + 1, num_workers), dtype=np.int64)
    np.add.at(change, (timetable.start, worker), 1)
    np.add.at(change, (timetable.end, worker), -1)
    return np.cumsum(change, axis=0)


def _summed(timetable: Timetable, worker: IntArray, held: IntArray) -> IntArray:
    """Return the loads by differences: a request adds s at its start, then 1 a step, and takes all away at the end."""
    jump = np.zeros_like(held)
    np.add.at(jump, (timetable.start, worker), timetable.prompt)
    np.add.at(jump, (timetable.end, worker), -(timetable.prompt + timetable.output))
    # Before step k a request has grown once for each step in which it ran, that is the running count of step k - 1.
    jump[1:] += held[:-1]
    return np.cumsum(jump, axis=0)[:-1]
