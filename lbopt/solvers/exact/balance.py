"""All requests placed, the heaviest worker as light as can be: the search as a whole, in slices.

1. Bounds (`mean_bound`), and the longest first, by load and by need; swaps bring loads down to the bound where sizes
   are dense, and trades of pairs where workers have few requests.
2. A target for the maximum is set and the workers are filled up to it: `peel` while the pool is rich, `walk` for the
   last ones. Where the walk fails, some workers are emptied again and filled otherwise. The first target is the bound;
   where it is out of reach for now, larger ones between the bound and the best known, then the bound again, with more
   work.

This finds; it proves by reaching the bound alone. The same arguments give the same course of the search.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.draw import MODULUS, draw, new_dice
from lbopt.kernels.partition.longest_first import longest_first
from lbopt.kernels.partition.peel import PEELING, Pool, peel
from lbopt.kernels.partition.state import CLOCK, Lists
from lbopt.kernels.partition.swaps import swap_down
from lbopt.kernels.partition.trades import MOST_HELD, trade_down
from lbopt.kernels.partition.walk import KEPT, WALK, Walk, walk
from lbopt.model.floors import counting_floor, raised
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits

#: Work between two looks at the clock, and about how long that takes.
SLICE, SLICE_MICROSECONDS = 12_000_000, 20_000

_OPEN = 100  # requests left to a walk
_FEWEST_OPEN = 4  # workers left to a walk
_REWIND = 800  # requests from which on workers are filled anew after a failure
_WALK = 1_000_000_000  # work for a walk, before workers are emptied again
_FIRST_TRY = 300_000_000  # work for the first try of a target

_DENSE = 4  # requests a worker from which on trades are tried: with fewer there are few differences
_TRADING = 20_000  # work for trades for each request, before workers are filled to targets

#: A generator that gives the caller a look at the clock at each `yield`, and returns whether it reached its aim.
Slices = Generator[None, None, bool]


def mean_bound(base: IntArray, slots: IntArray, descending: IntArray) -> int:
    """Return a lower bound on the largest load when all requests are placed.

    `base` (G,) loads that are there, `slots` (G,), `descending` (N,) sizes, N <= sum of the slots; int64, >= 0. The
    maximum M is at least
    - every base load, and the mean load rounded up;
    - the lightest open worker's load plus the largest size;
    - base_g plus the least that g must take, because the slots elsewhere do not suffice;
    - the least M with sum_g min(M, base_g + the slots_g largest sizes) >= the sum of all: a worker with few slots
      cannot get its share, so others have to carry more than the mean;
    - what counting the largest requests among the workers says (`lbopt.model.floors.counting_floor`);
    - what all this says of the slots that a level leaves a use for (`lbopt.model.floors.raised`).

    Parameters
    ----------
    base
        int64 (G,), loads before, tokens.
    slots
        int64 (G,), free slots.
    descending
        int64 (N,), sizes of all requests, largest first, tokens.
    """
    slots = np.minimum(slots, descending.size)
    bound = _bound_with(base, descending, slots)
    return raised(bound, base, slots, descending[::-1], partial(_bound_with, base, descending))


def _bound_with(base: IntArray, descending: IntArray, slots: IntArray) -> int:
    N = descending.size
    top = np.concatenate([[0], np.cumsum(descending)])
    total = sum(base.tolist()) + int(top[-1])
    forced = np.maximum(0, N - (slots.sum() - slots))
    bound = max(int((base + (top[-1] - top[N - forced])).max()), -(-total // base.size))
    if N:
        bound = max(bound, int(base[slots > 0].min() + descending[0]), counting_floor(base, slots, descending))
    most = base + top[slots]
    low, high = bound, max(bound, int(most.max()))  # at `high` all fits
    while low < high:
        middle = (low + high) // 2
        if sum(np.minimum(most, middle).tolist()) >= total:
            high = middle
        else:
            low = middle + 1
    return int(low)


class Balancing:
    """The search for the least largest load: the best assignment so far, and what it takes to go on.

    Parameters
    ----------
    base, slots, sizes
        int64 (G,), (G,), (N,), >= 0: loads before, free slots, sizes of the requests, all of which are placed. N is at
        most the sum of the slots, and all loads together are below 2**61.
    limits
        When the time is over: a slice does not outlast it; and the seed of the draws.
    """

    def __init__(self, base: IntArray, slots: IntArray, sizes: IntArray, limits: Limits) -> None:
        self.base, self.slots, self._limits = base, slots, limits
        self.sizes = sizes.copy()  # read-only ones compile every kernel once more
        self.order = np.argsort(-sizes, kind="stable")
        self.bound = mean_bound(base, slots, sizes[self.order])
        self.assignment: IntArray = np.zeros(sizes.size, np.int64)
        self.max_load = np.iinfo(np.int64).max
        self.work = 0
        self._dice = new_dice(limits.seed)
        entries, layers = 1 << 19, 64
        total, parent, last, first = np.empty((4, entries), np.int64)
        start, second_start = np.empty((2, layers), np.int64)
        self._scratch: dict[str, Any] = {
            **{"total": total, "parent": parent, "last": last, "first": first, "merit": np.empty(entries)},
            **{"start": start, "second_start": second_start, "table": np.empty(1 << 21, np.int64)},
            **{"clock": record(CLOCK), "dice": self._dice, "merits": np.empty(KEPT)},
        }

    def _lists(self, slots: int) -> Lists:
        """Return the scratch of fillings of so many requests."""
        return Lists(picks=np.empty((KEPT, slots), np.int64), **self._scratch)

    def _set_clock(self) -> None:
        clock = self._scratch["clock"]
        clock.deadline, clock.expired = self._limits.deadline(), 0

    @property
    def done(self) -> bool:
        """Whether the bound is reached."""
        return bool(self.max_load == self.bound)

    def offer(self, assignment: IntArray) -> None:
        """Keep an assignment if it is the best so far."""
        load = self.base.copy()
        np.add.at(load, assignment, self.sizes)
        if int(load.max()) < self.max_load:
            self.assignment, self.max_load = assignment.copy(), int(load.max())

    def longest_first(self) -> Slices:
        """Place all requests, longest first, and swap; return whether that reached the bound."""
        G, N = self.base.size, self.sizes.size
        slots = np.minimum(self.slots, N)
        starts = []
        for by_need in (0, 1):
            load, assignment = np.empty(G, np.int64), np.empty(N, np.int64)
            if by_need and slots.sum() > N + N // 4:
                continue
            self.work += longest_first(self.base, slots, self.sizes, self.order, self.bound, by_need, load, assignment)
            starts.append((int(load.max()), by_need, load, assignment))
        _, _, load, assignment = min(starts, key=lambda start: start[:2])
        self.offer(assignment)
        work = SLICE
        while not self.done and work >= SLICE:
            deadline = self._limits.deadline()
            work = swap_down(slots, self.sizes, self.order, self.bound, SLICE, load, assignment, deadline)
            self.offer(assignment)
            self.work += int(work)
            yield
        yield from self._trade(load, assignment)
        return self.done

    def _trade(self, load: IntArray, assignment: IntArray) -> Slices:
        """Trade pairs of requests, until that reaches the bound or finds no trade."""
        limit = self.work + _TRADING * self.sizes.size
        held = np.bincount(assignment)
        work = allowed = SLICE if held.max() <= MOST_HELD and held.sum() >= _DENSE * np.count_nonzero(held) else 0
        while not self.done and work >= allowed and self.work < limit:
            allowed = min(SLICE, limit - self.work)
            work = trade_down(self.sizes, self.bound, allowed, load, assignment, self._dice, self._limits.deadline())
            self.offer(assignment)
            self.work += int(work)
            yield
        return self.done

    def fill_to_targets(self) -> Slices:
        """Fill the workers up to one target after the other; ends only where the bound is reached."""
        failed, budget = -1, _FIRST_TRY
        while not self.done:
            gap = self.max_load - self.bound
            if failed >= 0 and gap <= 2 * failed + 2:
                failed, budget = -1, 4 * budget
            target = isqrt((failed + 1) * gap) if failed >= 0 else 0
            if not (yield from self._reach(self.bound + target, budget)):
                failed = target
        return True

    def _reach(self, target: int, budget: int) -> Slices:
        """Look for an assignment with no load above `target`."""
        limit = self.work + budget
        count = np.bincount(self.assignment, minlength=self.base.size)
        workers = np.flatnonzero(count)
        lack = target - self.base
        need = lack[workers] / count[workers]
        workers = workers[np.lexsort((-np.abs(need - need.mean()), count[workers]))]
        slack = min(sum(lack[workers].tolist()) - sum(self.sizes.tolist()), 1 << 61)
        if slack < 0:  # the best assignment leaves workers empty, and the others cannot carry all below the target
            yield
            return False
        stop = _first_open(count[workers])
        assignment = np.full(self.sizes.size, -1)
        open_workers = workers
        while True:
            last = open_workers.size - (workers.size - stop)
            slack, spent = yield from self._peel(open_workers, last, lack, count, slack, limit, assignment)
            if not spent:
                return False
            filled = np.bincount(assignment[assignment >= 0], minlength=self.base.size)
            open_workers = workers[filled[workers] == 0]
            left = np.flatnonzero(assignment < 0)
            left = left[np.argsort(self.sizes[left], kind="stable")]
            upto = min(limit, self.work + _WALK)
            if (yield from self._finish(left, open_workers, lack, count, slack, upto, assignment)):
                return True
            solved = workers[filled[workers] > 0]
            if self.work > limit or solved.size == 0:
                return False
            # empty those filled last
            back = solved.size - int(np.searchsorted(np.cumsum(count[solved][::-1]), _REWIND - left.size)) - 1
            emptied = solved[max(0, back) :]
            open_workers = workers[np.isin(workers, emptied) | (filled[workers] == 0)]
            inside = np.isin(assignment, emptied)
            slack += sum(lack[emptied].tolist()) - sum(self.sizes[inside].tolist())
            assignment[inside] = -1

    def _peel(
        self,
        workers: IntArray,
        last: int,
        lack: IntArray,
        count: IntArray,
        slack: int,
        limit: int,
        assignment: IntArray,
    ) -> Generator[None, None, tuple[int, bool]]:
        """Fill all but the last; returns the slack left, and whether work was left to do it."""
        pool = np.flatnonzero(assignment < 0)
        pool = pool[np.argsort(self.sizes[pool], kind="stable")]
        state = record(PEELING)
        state.left, state.slack = pool.size, slack
        peeled = Pool(
            value=self.sizes[pool].copy(),
            item=pool.copy(),
            taken=np.zeros(pool.size, np.int64),
            state=state,
            lack=lack,
            slots=count,
            order=workers,
            assignment=assignment,
        )
        lists, done = self._lists(int(count.max())), False
        while not done:
            before = int(state.work)
            self._set_clock()
            done = peel(peeled, lists, last, SLICE)
            self.work += int(state.work) - before
            yield
            if self.work > limit:
                return int(state.slack), False
        return int(state.slack), True

    def _finish(
        self,
        left: IntArray,
        workers: IntArray,
        lack: IntArray,
        count: IntArray,
        slack: int,
        limit: int,
        assignment: IntArray,
    ) -> Slices:
        """Fill `workers` with the requests `left`, and complete the assignment."""
        value, slots = self.sizes[left], count[workers]
        state = record(WALK)
        state.unfilled, state.slack = slots.size, slack
        dice = self._dice
        walked = Walk(
            value=value,
            lack=lack[workers],
            slots=slots,
            holder=np.full(value.size, -1),
            order=np.arange(slots.size),
            state=state,
            code=np.array([draw(dice, MODULUS) << 30 | draw(dice, 1 << 30) for _ in range(value.size)]),
            known=np.zeros(1 << 18, np.int64),
            place=np.empty(value.size, np.int64),
            number=np.empty(value.size, np.int64),
        )
        lists = self._lists(int(slots.max()))
        while self.work < limit:
            self._set_clock()
            found, work = walk(walked, lists, SLICE)
            if found:
                assignment[left] = workers[walked.holder]
                self.offer(assignment)
            self.work += int(work)
            yield
            if found:
                return True
        return False


def _first_open(count: IntArray) -> int:
    """Return from which worker on they are left to the walk: the last ones, with so many requests and workers."""
    stop, opened = count.size, 0
    while stop > 0 and (opened < _OPEN or count.size - stop < _FEWEST_OPEN):
        stop -= 1
        opened += int(count[stop])
    return stop
