"""A placement of a whole run by a router that knows all ends: an upper bound of the clairvoyant optimum.

Three kinds of placements are tried on a timetable, and the one with the least sum of barriers is kept:

- those that are given, such as the rule's own,
- those of the greedy rule with foresight (`lbopt.kernels.hindsight.local_search_greedy`): requests are placed in the
  order of their starts, or, read backwards (`Reading`), in that of their ends; some weights of the future are tried,
- the best of these after exchanges of chains of requests (`local_search_moves`), read backwards and forwards in turn.

Most of what is gained in a long run is gained backwards. Reading forwards comes to the drain last, where the
longest requests are left as earlier steps have placed them; read backwards the drain is placed first, at will.

A search with a limit of seconds ends with the best that it has; so does one that Ctrl-C ends. Without either it is the
same on every machine.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hindsight.timetable import IntArray, Timetable
from lbopt.kernels.hindsight import local_search_greedy as greedy
from lbopt.kernels.hindsight import local_search_moves as moves
from lbopt.kernels.hindsight.local_search_bounds import least_barriers as bounds_of_steps
from lbopt.solvers.budget import Budget

#: Points ahead at which a placement is looked at, and the powers q by which those count less that can be mended.
_POINTS, _FORWARDS, _BACKWARDS = 40, (8.0, 32.0), (8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
#: Exchanges that are tried in a step at most.
_MOST_EXCHANGES = 20_000
#: Steps between two that have a list of the requests that run in them.
_SPACING = 32
#: Placements that chains start from, which part of the trials each of them gets, and how the result is named.
_STARTED, _SHARE, _CHAINS = 3, 8, ", chains"
#: How often the best of them is read backwards and then forwards.
_TURNS = 4
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
        The name of a rule for a placement that was given, "foresight 8" or "foresight 8 backwards" with the power of
        its weights, or any of these with "chains".
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
    effort: int = 20,
    time_limit: float | None = None,
    seed: int = 0,
) -> Placed:
    """Place the requests of a timetable so that the sum of the barriers is low.

    Parameters
    ----------
    known
        Placements by the names of the rules that made them; they are checked.
    effort
        Chains that are tried, for each step of the timetable. 0 searches nothing and takes the best of what is known.
    time_limit
        Seconds, those of compiling left out; None for no limit. A placement is returned whatever the limit is.

    Raises
    ------
    InputError
        Where a number is out of range, or a known placement needs more slots than there are.
    """
    if effort < 0:
        raise InputError(f"effort is {effort}; expected chains for each step, or 0 for no search")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit is {time_limit}; expected seconds above 0, or none")
    if seed < 0:
        raise InputError(f"seed is {seed}; expected 0 or more")
    search = _Search(timetable, Budget(time_limit))
    for name, worker in (known or {}).items():
        search.offer(name, np.asarray(worker, dtype=np.int64))
    if not known:
        search.offer("slot by slot", slot_by_slot(timetable))
    if effort and timetable.num_requests and timetable.num_workers > 1:
        with search.until_stopped():
            search.offer_foresight()
            search.improve_best(effort, seed)
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


def least_barriers(timetable: Timetable) -> IntArray:
    """Return what the barrier of each step cannot be below, in whole tokens, (K,)."""
    return bounds_of_steps(
        timetable.start, timetable.prompt, timetable.output, timetable.num_workers, timetable.slots_per_worker
    )


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A timetable as the kernels read it: forwards, or backwards in time.

    Backwards a request comes at its end, with the largest size that it has, s + o - 1, gets smaller by a token a step,
    and leaves at its start. The same placement has the same loads in the same steps, so a search may change the
    direction at any time. What reads forwards ends in the drain, the steps after the last start, in which nothing comes
    any more that could mend what earlier steps have left. Backwards the drain comes first, with free slots, and there
    is none at the end: in the first step most requests start together.

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


class _StoppedError(Exception):
    """The time is up."""


class _Search:
    """What has been found so far, and the clock."""

    def __init__(self, timetable: Timetable, budget: Budget) -> None:
        self._timetable, self._budget = timetable, budget
        self._tried: dict[str, int] = {}
        self._found: list[tuple[int, str, IntArray]] = []
        self._complete, self._interrupted = True, False
        self._readings = (backwards(timetable), forwards(timetable))
        self._least = least_barriers(timetable)

    def offer(self, name: str, worker: IntArray) -> None:
        """Check a placement and keep it."""
        barriers = self._timetable.barriers(worker)
        self._tried[name] = barriers
        self._found.append((barriers, name, worker))
        self._found.sort(key=lambda one: one[0])

    def best(self) -> Placed:
        """Return the best placement."""
        barriers, name, worker = self._found[0]
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
            before, left = self._budget.seconds, self._budget.remaining()
            if left is not None and left <= 0:
                raise _StoppedError
            last = min(done + size, total)
            yield done, last
            done, took = last, self._budget.seconds - before
            size = max(1, min(2 * size, int(size * _SLICE / max(took, 1e-6))))

    def with_foresight(self, reading: Reading, fading: float) -> IntArray:
        """Return the placement of the greedy rule with foresight, read forwards or backwards."""
        table = self._timetable
        workers, steps = table.num_workers, table.num_steps
        farthest = max(1, int(table.output.max()) - 1)
        ahead = np.unique(np.concatenate([[0], np.geomspace(1, farthest, _POINTS).round()])).astype(np.int64)
        totals, running = (np.append(reading.steps_read(one), 0) for one in (table.totals(), table.running()))
        made = greedy.Growing(
            start=reading.start,
            prompt=reading.prompt,
            output=reading.output,
            growth=reading.growth,
            totals=totals,
            running=running,
            slots=table.slots_per_worker,
            ahead=ahead,
            span=np.diff(ahead, append=ahead[-1] + 1).astype(np.float64),
            fading=fading,
            scale=max(1.0, float(totals.sum()) / int(running.sum())),
            worker=np.zeros(table.num_requests, dtype=np.int64),
            loads=np.zeros((steps, workers), dtype=np.int64),
            held=np.zeros((steps, workers), dtype=np.int64),
            placed_load=np.zeros(steps + 1, dtype=np.int64),
            placed_count=np.zeros(steps + 1, dtype=np.int64),
        )
        placed = 0
        for _, last in self._in_slices(steps):
            placed = greedy.place_from(made, placed, last, _MOST_EXCHANGES)
        return reading.placement(made.worker)

    def offer_foresight(self) -> None:
        """Try the greedy rule in both directions, with all weights of the future."""
        for reading, words, fadings in zip(self._readings, (" backwards", ""), (_BACKWARDS, _FORWARDS), strict=True):
            for fading in fadings:
                self.offer(f"foresight {fading:g}{words}", self.with_foresight(reading, fading))

    def improve_best(self, effort: int, seed: int) -> None:
        """Improve the best placements by chains: some of them for a while, and then the one that has become best."""
        trials = effort * self._timetable.num_steps
        for _, name, worker in self._found[:_STARTED]:
            self._improve(name, worker, np.linspace(0, trials // _SHARE, 3), seed)
        _, name, worker = self._found[0]
        turns = np.linspace(trials // _SHARE, trials, 2 * _TURNS + 1)
        self._improve(name.removesuffix(_CHAINS), worker, turns, seed)

    def _improve(self, name: str, worker: IntArray, turns: NDArray[np.float64], seed: int) -> None:
        """Try the chains between these numbers, in one direction and the other, and keep what there is at the end.

        Parameters
        ----------
        turns
            Numbers of chains at which the direction changes.
        seed
            Of the chains.
        """
        before, turned = worker, None
        try:
            for turn, (first, last) in enumerate(itertools.pairwise(turns.astype(np.int64).tolist())):
                reading = self._readings[turn % 2]
                turned = reading, _placement(reading, worker, self._least)
                give_up = self._timetable.barriers(worker) / self._timetable.num_steps  # a mean barrier
                for begin, end in self._in_slices(last - first):
                    moves.improve(turned[1], first + begin, first + end, give_up, np.uint64(seed))
                worker = reading.placement(turned[1].worker)
        finally:
            if turned is not None:
                worker = turned[0].placement(turned[1].worker)
            if not np.array_equal(worker, before):
                self.offer(name + _CHAINS, worker)


def _placement(reading: Reading, worker: IntArray, least: IntArray) -> moves.Placement:
    """Return a placement as the kernel of chains takes it."""
    table = reading.timetable
    steps, end = table.num_steps, reading.start + reading.output
    lists = [np.flatnonzero((reading.start <= k) & (end > k)) for k in range(0, steps, _SPACING)]
    placement = moves.Placement(
        start=reading.start,
        prompt=reading.prompt,
        output=reading.output,
        growth=reading.growth,
        slots=table.slots_per_worker,
        last_start=int(reading.start.max()),
        first=np.searchsorted(reading.start, np.arange(steps + 2)).astype(np.int64),
        spacing=_SPACING,
        listed=np.cumsum([0, *map(len, lists)]).astype(np.int64),
        lists=np.concatenate([*lists, np.zeros(0, dtype=np.int64)]).astype(np.int64),
        worker=reading.workers_read(worker),
        loads=reading.steps_read(table.loads(worker)),
        held=reading.steps_read(table.held(worker)[:-1]),
        heaviest=np.zeros((steps, moves.KEPT), dtype=np.int64),
        holder=np.zeros((steps, moves.KEPT), dtype=np.int64),
        barrier=np.zeros(steps, dtype=np.int64),
        leader=np.zeros(steps, dtype=np.int64),
        least=reading.steps_read(least),
        moved=np.zeros(steps + 1, dtype=np.int64),
        chain=np.zeros((2, moves.LONGEST_CHAIN), dtype=np.int64),
    )
    moves.sort_steps(placement, 0, steps)
    return placement
