"""The surplus bound: no two steps are taken apart, and no cover of all requests is searched.

In window c let floor F be what its barriers are at least, W the tokens of all requests, and x_g those of worker g. The
floor is at least the mean, so not all workers are above it: at most k are, with k F < W and k <= G - 1. Hence the cost
of the window is at least F + sum_g max(0, x_g - F) / k. With any weight l this is, since the x_g add up to W,

    F - l (G F - W) + sum_g r(x_g),     r(x) = (1 / k - l) max(0, x - F) + l max(0, F - x).

So a placement costs at least a constant and what the sets of its workers cost one by one. These sets cover each request
once: with a price p_i for each request, sum_g r(S_g) >= sum_i p_i + G min_S (r(S) - p(S)), the least over all sets that
one worker can run (Lagrangian duality; the best prices reach the value of set partitioning's linear relaxation:
Geoffrion 1974, Lagrangean relaxation for integer programming). A set's cost joins all steps of its requests, which the
bounds of single steps do not.

The least is found by exhaustion (`lbopt.kernels.hindsight.optimum_surplus`), the prices by column generation: a linear
program over the cheapest sets seen so far, with prices kept in a box around the best ones (the boxstep method: Marsten,
Hogan and Blankenship 1975). Whatever the prices, the bound holds; they are whole parts of a token.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from lbopt.hindsight.halt import Halt
from lbopt.hindsight.search_cover import starts_of
from lbopt.hindsight.timetable import Timetable
from lbopt.hindsight.windows import Windows, cut
from lbopt.kernels.arrays import Record, record
from lbopt.kernels.deadline import now
from lbopt.kernels.hindsight.optimum_lists import DONE, Starts
from lbopt.kernels.hindsight.optimum_surplus import BANNED, PRICED, Found, Outlook, Prices, cheapest_sets

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: Sets of the requests that start first beyond which no pass over all sets would end.
MOST_BEGINNINGS = 50_000_000

#: Workers beyond which a token has too many parts.
MOST_WORKERS = 12

#: Sets that a pass lists, and sets in the linear program at most.
_LISTED = 1 << 10
_ROWS = 3_000

#: Stands for the price of a banned request where prices are added up.
_NEVER_CHOSEN = -(1 << 54)

#: Groups of windows in which what is to come is judged, about.
_GROUPS = 16

#: Parts of all sets that prices are tried on: how many at a time, and about how many first requests' sets each has.
_PARTS = 3
_PART_SETS = 30_000

#: Half the width of the first box around the prices, in parts of what an average set costs.
_BOX = 0.1

#: Prices are raised until the linear program promises less than this part more, or for this part of the time.
_WORTH = 0.01
_RAISING = 0.4

#: By what part of an average set's cost the passes over all sets look below the cheapest set seen, and how much longer
#: than the last pass there must be left for the next one.
_MODESTY = (0.3, 0.12, 0.04, 0.0)
_SLOWER = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What the windows add to the bound, in parts of a token.

    Parameters
    ----------
    parts
        Parts that a token is divided into.
    above, below
        int, (C,): what a worker costs for each token over the floor and under it.
    constant
        What all windows cost besides.
    """

    parts: int
    above: IntArray
    below: IntArray
    constant: int


@dataclass(frozen=True, slots=True, eq=False)
class SurplusBound:
    """A lower bound and what it follows from.

    Parameters
    ----------
    lower
        No placement has smaller barriers.
    prices
        int, (N,): price of each request, in the order of the timetable, in parts of a token (`Terms.parts`).
    cuts
        First step of each window, and the step after the last one.
    nodes
        Decisions that were tried.
    """

    lower: int
    prices: IntArray
    cuts: IntArray
    nodes: int


def terms_of(timetable: Timetable, windows: Windows) -> Terms:
    """Return the weights of the windows: alike on both sides of the floor where slots are full, above it elsewhere."""
    workers, totals, floor = timetable.num_workers, windows.totals, windows.floor
    over = np.minimum(workers - 1, (totals - 1) // np.maximum(floor, 1)).clip(min=1)  # workers above the floor at most
    parts = 2 * math.lcm(*(int(k) for k in np.unique(over)))
    running = np.append(timetable.running(), 0)
    full = running[windows.cuts[:-1]] == workers * timetable.slots_per_worker
    below = np.where(full, parts // (2 * over), 0)
    constant = int((parts * floor - below * (workers * floor - totals)).sum())
    return Terms(parts, parts // over - below, below, constant)


def surplus_bound(
    timetable: Timetable, worker: IntArray, time_limit: float, halt: Halt | None = None
) -> SurplusBound | None:
    """Return the best surplus bound that is found in time; None where not even one pass over all sets ends.

    Parameters
    ----------
    timetable
        The run.
    worker
        int, (N,): a good placement, whose sets are the first that prices are made for.
    time_limit
        Seconds.
    halt
        Ends the search before its time; None where nothing does.
    """
    if not 1 < timetable.num_workers <= MOST_WORKERS or timetable.num_requests == 0:
        return None
    # Of the requests that start together the longest are decided first, since they change most.
    order = np.lexsort((-timetable.output, timetable.start))
    columns = (timetable.start[order], timetable.prompt[order], timetable.output[order])
    ordered = Timetable(timetable.num_workers, timetable.slots_per_worker, *columns)
    windows = cut(ordered)
    starts = starts_of(ordered, windows, np.arange(ordered.num_requests))
    if beginnings(starts) > MOST_BEGINNINGS:
        return None
    search = _Search(ordered, windows, starts, now() + int(time_limit * 1e9), halt or Halt())
    search.run(worker[order])
    if search.best is None:
        return None
    prices = np.zeros(order.size, dtype=np.int64)
    prices[order] = search.shifted(search.best_prices)[0]
    cuts = windows.cuts if windows.cuts[0] == 0 else np.append(0, windows.cuts)
    return SurplusBound(search.best, prices, cuts, search.nodes)


def outlook_of(windows: Windows, starts: Starts, terms: Terms) -> Outlook:
    """Return bounds on what requests lead to: who starts in a full fleet follows one of those that have just ended."""
    cost, groups = np.stack([terms.above, terms.below]), [0]
    most = int(windows.floor.sum()) // _GROUPS
    for c in range(1, windows.floor.size):
        if (cost[:, c] != cost[:, c - 1]).any() or int(windows.floor[groups[-1] : c].sum()) > most:
            groups.append(c)
    first = np.array(groups, dtype=np.int64)
    low = np.ascontiguousarray(np.add.reduceat(windows.tokens, first, axis=1))
    high, waves = low.copy(), starts.least.size
    next_low, next_high = np.zeros_like(low), np.zeros_like(low)
    known = (starts.deficit[1:] == 0).all()  # else a slot can be taken that nobody has left
    for wave in range(waves - 1, 0, -1):
        if starts.deficit[wave] == 0:
            own = slice(int(starts.begin[wave]), int(starts.begin[wave + 1]))
            ended = starts.ended[starts.heirs_from[wave] : starts.ended_from[wave + 1]]
            next_low[ended], next_high[ended] = low[own].min(axis=0), high[own].max(axis=0)
            low[ended] += next_low[ended]
            high[ended] += next_high[ended]
    first_to_start, slots = int(starts.begin[1]), int(starts.most[0])
    return Outlook(
        low,
        high,
        next_low,
        next_high,
        _fill(low[:first_to_start], slots),
        -_fill(-high[:first_to_start], slots),
        np.add.reduceat(windows.floor, first),
        terms.above[first],
        terms.below[first] if known else np.zeros_like(first),
        np.searchsorted(first, starts.window).astype(np.int64),
    )


def _fill(values: IntArray, most: int) -> IntArray:
    """Return the least sums of 0, 1, ... `most` rows of `values` from each row on, or of all where there are fewer."""
    sums = np.zeros((values.shape[0] + 1, most + 1, *values.shape[1:]), dtype=np.int64)
    for i in range(values.shape[0]):
        ordered = np.sort(values[i:], axis=0)[:most]
        sums[i, 1 : len(ordered) + 1] = np.cumsum(ordered, axis=0)
        sums[i, len(ordered) + 1 :] = sums[i, len(ordered)]
    return sums


def beginnings(starts: Starts) -> int:
    """Return the number of sets of those requests that start first."""
    count, low, high = int(starts.begin[1]), int(starts.least[0]), int(starts.most[0])
    return sum(math.comb(count, size) for size in range(low, high + 1))


class _Search:
    """Prices, the sets seen so far, and the best bound."""

    def __init__(self, timetable: Timetable, windows: Windows, starts: Starts, deadline: int, halt: Halt) -> None:
        self.timetable, self.windows, self.starts = timetable, windows, starts
        self.terms = terms_of(timetable, windows)
        self.outlook = outlook_of(windows, starts, self.terms)
        self.workers = timetable.num_workers
        self.deadline, self.halt = deadline, halt
        self.best: int | None = None
        self.best_prices = np.zeros(timetable.num_requests, dtype=np.int64)
        self.nodes = 0
        self.members = np.zeros((0, timetable.num_requests), dtype=bool)  # sets seen so far
        self.costs = np.zeros(0, dtype=np.int64)  # what they cost without prices
        self.rng = np.random.default_rng(0)
        slots, first = timetable.slots_per_worker, int(starts.begin[1])
        # So many of the requests that start first are looked at in a part.
        self.part = max(
            (m for m in range(1, first + 1) if math.comb(m, min(m // 2, slots)) <= _PART_SETS), default=first
        )

    def run(self, worker: IntArray) -> None:
        """Raise the bound until time is up or the linear program cannot be passed by more than a little."""
        own = np.arange(self.workers)[:, None] == worker[None, :]
        self._note(own, self._cost_of(own))
        scale = max(1.0, float(self.costs.mean()))
        center = np.zeros(self.timetable.num_requests, dtype=np.int64)
        began = now()
        center = self._raised(center, _BOX * scale, scale, began + int(_RAISING * (self.deadline - began)))
        for modesty in _MODESTY:
            began = now()
            if self.halt.is_asked or self.deadline <= began:
                return
            # Sets a little cheaper than the cheapest seen are few, and looking for these alone takes less time.
            cheapest = int(self._reduced(center).min())
            least, ended = self._pass(center, cheapest - 1 - int(modesty * scale))
            if not ended:
                return
            bound = -(-(self.terms.constant + int(center.sum()) + self.workers * least) // self.terms.parts)
            if self.best is None or bound > self.best:
                self.best, self.best_prices = bound, center
            left = self.deadline - now()
            if left < _SLOWER * (now() - began):
                return
            if least <= cheapest - 1 - int(modesty * scale):  # such a set was not known
                center = self._raised(center, _BOX / 4 * scale, scale, now() + int(_RAISING * left / 2))

    def _raised(self, center: IntArray, box: float, scale: float, deadline: int) -> IntArray:
        """Return better prices, by what parts of all sets say of them.

        Parameters
        ----------
        center
            int, (N,): prices to start from.
        box
            By how much a price changes at first, at most.
        scale
            What an average set of a good placement costs.
        deadline
            Nanoseconds, as in `lbopt.kernels.deadline`.
        """
        value = self._guess(center, deadline)
        while True:
            left = (deadline - now()) / 1e9
            if left <= 0 or self.halt.is_asked:
                break
            prices, hoped = self._master(center, box, left)
            if hoped <= value + _WORTH * self.workers * scale:
                break
            reached = self._guess(prices, deadline)
            value = int(center.sum()) + self.workers * int(self._reduced(center).min())  # with the sets found since
            if reached > value:
                center, value = prices, reached
            else:
                box /= 2
        return center

    def _guess(self, prices: IntArray, deadline: int) -> int:
        """Return what the bound of these prices is at most, by a part of all sets; note the cheap ones."""
        first = int(self.starts.begin[1])
        for _ in range(_PARTS):
            left_out = self.rng.permutation(first)[min(first, self.part) :]
            self._pass(prices, int(self._reduced(prices).min()) - 1, left_out, deadline)
        return int(prices.sum()) + self.workers * int(self._reduced(prices).min())

    def _reduced(self, prices: IntArray) -> IntArray:
        return np.asarray(self.costs - self.members @ prices, dtype=np.int64)

    def _cost_of(self, members: NDArray[np.bool_]) -> IntArray:
        """Return what sets cost without prices."""
        over = members.astype(np.int64) @ self.windows.tokens - self.windows.floor
        return np.asarray(np.where(over > 0, self.terms.above * over, -self.terms.below * over).sum(axis=1))

    def _note(self, members: NDArray[np.bool_], costs: IntArray) -> None:
        self.members = np.concatenate([self.members, members])
        self.costs = np.concatenate([self.costs, costs])

    def _pass(
        self, prices: IntArray, budget: int, left_out: IntArray | None = None, deadline: int | None = None
    ) -> tuple[int, bool]:
        """Return the least cost of all sets with these prices, and whether the pass ended; note cheap sets.

        Parameters
        ----------
        prices
            int, (N,).
        budget
            What sets may cost that are listed.
        left_out
            Sets with one of these requests are not looked at; None for none.
        deadline
            Nanoseconds; None for that of the whole search.
        """
        shifted, later = self.shifted(prices)
        if left_out is not None:
            shifted[left_out] = BANNED
        words = -(-self.timetable.num_requests // 64)
        found = Found(np.zeros((_LISTED, words), np.uint64), np.zeros(_LISTED, np.int64))
        state: Record = record(PRICED)
        state.budget, state.deadline = budget, min(self.deadline, deadline or self.deadline)
        self.halt.watch(state)
        first, slots = int(self.starts.begin[1]), int(self.starts.most[0])
        fill = -_fill(-shifted[:first].clip(min=_NEVER_CHOSEN), slots)
        prices_of = Prices(shifted, fill, later, self.terms.above, self.terms.below)
        ended = cheapest_sets(self.starts, prices_of, self.outlook, found, state)
        self.nodes += int(state.nodes)
        count = int(state.sets)
        rows = np.argsort(found.cost[:count], kind="stable")
        bits = np.unpackbits(found.mask[rows].view(np.uint8), axis=1, bitorder="little")
        members = bits[:, : self.timetable.num_requests].astype(bool)
        self._note(members, found.cost[rows] + np.asarray(members @ prices, dtype=np.int64))
        least = int(found.cost[rows[0]]) if count else int(state.budget) + 1
        return least, ended == DONE

    def shifted(self, prices: IntArray) -> tuple[IntArray, IntArray]:
        """Return prices with which every set costs the same, none above 0 where full slots change hands.

        A worker with full slots takes as many requests as it has lost, so what is taken off all that start may be put
        on all that have just ended. Also returned: the largest sum of prices that later starts can have.
        """
        shifted, starts, waves = prices.copy(), self.starts, self.starts.least.size
        later = np.zeros(waves + 1, dtype=np.int64)
        for wave in range(waves - 1, -1, -1):
            own = slice(int(starts.begin[wave]), int(starts.begin[wave + 1]))
            if starts.deficit[wave] == 0:
                most = int(shifted[own].max())
                shifted[own] -= most
                shifted[starts.ended[starts.heirs_from[wave] : starts.ended_from[wave + 1]]] += most
            later[wave] = later[wave + 1] + int(shifted[own].clip(min=0).sum())
        return shifted, later

    def _master(self, center: IntArray, box: float, time_limit: float) -> tuple[IntArray, float]:
        """Return the best prices for the sets seen so far within a box, and the bound that these sets hope for."""
        order = np.argsort(self._reduced(center), kind="stable")[:_ROWS]
        count = self.timetable.num_requests
        scale = max(1.0, box)
        # Unknown: the changes of the prices and the least cost, both in boxes.
        rows = np.hstack([self.members[order].astype(np.float64), np.ones((order.size, 1))])
        limits = self._reduced(center)[order] / scale
        goal = -np.append(np.ones(count), float(self.workers))
        bounds = [(-box / scale, box / scale)] * count + [(None, None)]
        answer = linprog(
            goal, A_ub=rows, b_ub=limits, bounds=bounds, method="highs", options={"time_limit": max(0.1, time_limit)}
        )
        if answer.x is None or answer.fun is None:
            return center, -math.inf
        prices = center + np.rint(answer.x[:count] * scale).astype(np.int64)
        return prices, float(center.sum()) - answer.fun * scale
