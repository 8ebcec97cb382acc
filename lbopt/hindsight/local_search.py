"""A placement of a whole run by a router that knows all ends: an upper bound of the clairvoyant optimum.

Three kinds of placements are tried on a timetable, and the one with the least sum of barriers is kept:

- those that are given, such as the rule's own,
- beams of widths 1, 2, 4, ... up to the width asked for (`lbopt.kernels.hindsight.local_search_beam`): requests are
  placed in the order of their starts, and the timetable says what every worker will hold,
- the best of these after moves and exchanges of requests (`local_search_moves`), which need slots that are free.

A search with a limit of seconds ends with the best that it has; so does one that Ctrl-C ends. Without either it is the
same on every machine.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hindsight.timetable import IntArray, Timetable
from lbopt.kernels.hindsight import local_search_beam as beams
from lbopt.kernels.hindsight import local_search_moves as moves

#: Steps after the present one at which a placement is looked at, and the steps after which they count 1 / e.
_FARTHEST, _POINTS, _FADING = 300, 20, 100.0
#: Bytes that the rings of a beam may take.
_MOST_BYTES = 2**29
#: Exchanges that are tried in a step at most, for each placement.
_MOST_EXCHANGES = 200_000
#: Trials of a round of moves and exchanges, for each request; the search ends after a round that saves less than this.
_TRIALS, _WORTH_WHILE = 20, 1e-4
#: Seconds after which the clock is looked at, about.
_SLICE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The best placement that a search has found.

    Parameters
    ----------
    worker
        int64 (N,), worker of each request.
    barriers
        Sum of the heaviest loads over all steps, tokens.
    found_by
        "rule" and the like for a placement that was given, "beam 8", or either with "moves".
    tried
        Sums of barriers by what found them, in the order in which they were tried.
    complete
        Whether the search did all that it was asked to; where not, time or Ctrl-C ended it.
    interrupted
        Whether Ctrl-C did.
    """

    worker: IntArray
    barriers: int
    found_by: str
    tried: dict[str, int] = field(default_factory=dict)
    complete: bool = True
    interrupted: bool = False


def place_in_hindsight(
    timetable: Timetable,
    known: Mapping[str, IntArray] | None = None,
    *,
    width: int = 8,
    time_limit: float | None = None,
    seed: int = 0,
) -> Placed:
    """Place the requests of a timetable so that the sum of the barriers is low.

    Parameters
    ----------
    timetable
        When requests start and end.
    known
        Placements by the names of the rules that made them; they are checked.
    width
        Of the widest beam. Work grows with it. 0 searches nothing and takes the best of what is known.
    time_limit
        Seconds; None for no limit. A placement is returned whatever the limit is.
    seed
        Of the moves and exchanges.

    Raises
    ------
    InputError
        Where a number is out of range, or a known placement needs more slots than there are.
    """
    if width < 0:
        raise InputError(f"width is {width}; expected a beam of 1 placement or more, or 0 for no search")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit is {time_limit}; expected seconds above 0, or none")
    if seed < 0:
        raise InputError(f"seed is {seed}; expected 0 or more")
    search = _Search(timetable, math.inf if time_limit is None else time.monotonic() + time_limit)
    for name, worker in (known or {}).items():
        search.offer(name, np.asarray(worker, dtype=np.int64))
    if not known:
        search.offer("slot by slot", slot_by_slot(timetable))
    if width and timetable.num_requests and timetable.num_workers > 1:
        with search.until_stopped():
            for wide in _widths(timetable, width):
                search.offer(f"beam {wide}", search.beam(wide))
            search.improve_best(seed)
    return search.best()


def slot_by_slot(timetable: Timetable) -> IntArray:
    """Return a placement that every timetable has: each request takes the slot that is free for longest, (N,)."""
    workers, slots = timetable.num_workers, timetable.slots_per_worker
    worker = np.zeros(timetable.num_requests, dtype=np.int64)
    free = [(0, place % workers) for place in range(workers * slots)]
    for row, end in enumerate(timetable.end.tolist()):
        worker[row] = free[0][1]
        heapq.heapreplace(free, (end, int(worker[row])))
    return worker


def _widths(timetable: Timetable, width: int) -> list[int]:
    """Return 1, 2, 4, ... and `width`, as far as memory goes."""
    of_one = 2 * 16 * int(timetable.output.max()) * timetable.num_workers
    width = max(1, min(width, _MOST_BYTES // of_one))
    return sorted({width, *(2**power for power in range(width.bit_length()) if 2**power <= width)})


class _StoppedError(Exception):
    """The time is up."""


class _Search:
    """What has been found so far, and the clock."""

    def __init__(self, timetable: Timetable, deadline: float) -> None:
        self._timetable, self._deadline = timetable, deadline
        self._tried: dict[str, int] = {}
        self._best: tuple[int, str, IntArray] | None = None
        self._complete, self._interrupted = True, False

    def offer(self, name: str, worker: IntArray) -> None:
        """Check a placement, and keep it if it is the best so far."""
        barriers = self._timetable.barriers(worker)
        self._tried[name] = barriers
        if self._best is None or barriers < self._best[0]:
            self._best = (barriers, name, worker)

    def best(self) -> Placed:
        """Return the best placement."""
        assert self._best is not None
        barriers, name, worker = self._best
        return Placed(worker, barriers, name, self._tried, self._complete, self._interrupted)

    @contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Search until the time is up or Ctrl-C is pressed."""
        try:
            yield
        except _StoppedError:
            self._complete = False
        except KeyboardInterrupt:
            self._complete, self._interrupted = False, True

    def _in_slices(self, total: int) -> Iterator[tuple[int, int]]:
        """Yield parts of `total` units of work, each of about as long as the clock may be left alone.

        Raises
        ------
        _StoppedError
            Between two parts, once the time is up.
        """
        done, size = 0, 1
        while done < total:
            before = time.monotonic()
            if before >= self._deadline:
                raise _StoppedError
            last = min(done + size, total)
            yield done, last
            done, took = last, time.monotonic() - before
            size = max(1, min(2 * size, int(size * _SLICE / max(took, 1e-6))))

    def beam(self, width: int) -> IntArray:
        """Return the best placement of a beam of that width."""
        table = self._timetable
        workers, steps = table.num_workers, table.num_steps
        rows = int(table.output.max())
        ahead = np.unique(np.concatenate([[0], np.geomspace(1, _FARTHEST, _POINTS).round()])).astype(np.int64)
        weight = np.exp(-ahead / _FADING) * np.diff(ahead, append=ahead[-1] + 1)
        beyond = np.zeros(rows + _FARTHEST + 1, dtype=np.int64)
        totals, running = table.totals(), table.running()
        requests = beams.Requests(
            start=table.start,
            prompt=table.prompt,
            output=table.output,
            totals=np.concatenate([totals, beyond]),
            running=np.concatenate([running, beyond]),
            slots=table.slots_per_worker,
        )
        scale = max(1.0, float(totals.sum()) / max(1, int(running.sum())))
        beam = beams.Beam(
            loads=np.zeros((2, width, rows, workers), dtype=np.int64),
            held=np.zeros((2, width, rows, workers), dtype=np.int64),
            past=np.zeros((2, width), dtype=np.int64),
            placed_load=np.zeros(steps + beyond.size, dtype=np.int64),
            placed_count=np.zeros(steps + beyond.size, dtype=np.int64),
            parent=np.zeros((steps, width), dtype=np.int16),
            worker=np.zeros((table.num_requests, width), dtype=np.int16),
            now=np.array([0, 0, 0, 1]),
        )
        points = beams.Points(ahead, weight, scale)
        for _, last in self._in_slices(steps):
            beams.advance(requests, points, beam, last, _MOST_EXCHANGES)
        return beams.trace_back(requests, beam)

    def improve_best(self, seed: int) -> None:
        """Improve the best placement by moves and exchanges, and keep what is there when the time is up."""
        assert self._best is not None
        table, (barriers, name, worker) = self._timetable, self._best
        loads = table.loads(worker)
        held = np.zeros((table.num_steps + 1, table.num_workers), dtype=np.int64)
        np.add.at(held, (table.start, worker), 1)
        np.add.at(held, (table.end, worker), -1)
        placement = moves.Placement(
            start=table.start,
            prompt=table.prompt,
            output=table.output,
            slots=table.slots_per_worker,
            worker=worker.copy(),
            loads=loads,
            held=np.cumsum(held, axis=0),
            heaviest=np.zeros((table.num_steps, moves.KEPT), dtype=np.int64),
            holder=np.zeros((table.num_steps, moves.KEPT), dtype=np.int64),
        )
        moves.sort_steps(placement, 0, table.num_steps)
        near = min(table.num_requests, 2 * table.num_workers * table.slots_per_worker)
        trials, done, saved = _TRIALS * table.num_requests, 0, 0
        try:
            while True:
                fallen = 0
                for first, last in self._in_slices(trials):
                    fallen += moves.improve(placement, near, done + first, done + last, np.uint64(seed))
                done, saved = done + trials, saved + fallen
                excess = table.num_workers * (barriers - saved) - int(table.totals().sum())
                if table.num_workers * fallen <= _WORTH_WHILE * excess:
                    break
        finally:
            if table.barriers(placement.worker) < barriers:
                self.offer(f"{name}, moves", placement.worker)
