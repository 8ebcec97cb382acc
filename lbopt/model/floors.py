"""What every decision costs, and what the largest load of a column is, at least, by elementary reasoning.

Everything is a sum over the workers or over requests that can be admitted, and stays below 2**62 as `StepProblem` has
checked; longer sums are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from lbopt.model.conditions import Conditions
from lbopt.model.integers import BoolArray, IntArray
from lbopt.model.step_problem import StepProblem

#: The base load of a worker that does not exist: above every sum, and a sum away from overflow.
_NO_WORKER = 1 << 62


class Floors:
    """Elementary bounds on what every decision of a problem costs; each statement has its one-line proof.

    What requests add is known from below and from above, `low` and `high` int64 (N', H + 1), of those that some worker
    may take; without conditions both are their work. Loads before are known with everything paused that may pause, and
    with nothing paused, `light` and `full` int64 (G, H + 1). All are shifted by the least load of their column, which
    leaves G max - sum unchanged, and divided by their greatest common divisor: rounding up gains most there.

    `lbopt/solvers/recount.py` has all of this a second time, for `verify`.
    """

    def __init__(self, problem: StepProblem) -> None:
        conditions = self.conditions = problem.conditions or Conditions(admit=problem.num_admitted)
        self.problem, self.slots = problem, problem.slots
        pace = np.int64(1) if conditions.pace is None else conditions.pace[:, None]
        full, light = problem.base * pace, problem.base * pace
        cuts = np.zeros(0, dtype=np.int64)
        if conditions.running_worker is not None and conditions.running_work is not None:
            cuts = conditions.running_work[:, 0] * np.broadcast_to(pace, full.shape)[conditions.running_worker, 0]
            np.subtract.at(light[:, 0], conditions.running_worker, cuts)
        self.shift = light.min(axis=0)
        # On which worker each request may go, and what it adds there: None where neither depends on the worker.
        self.may: BoolArray | None = None
        self.adds: IntArray | None = None
        if problem.conditions is None:
            placeable: Any = np.full(problem.num_requests, bool((self.slots > 0).any()))
            added: IntArray = problem.work[placeable]
            low = high = added
        else:
            self.may, adds = _pairs(problem, conditions)
            placeable = self.may.any(axis=1)
            self.may, adds = self.may[placeable], adds[placeable]
            added = adds[self.may]
            low = np.where(self.may[:, :, None], adds, _NO_WORKER).min(axis=1)
            high = np.where(self.may[:, :, None], adds, 0).max(axis=1)
            self.adds = adds
        above = light - self.shift
        self.scale = (
            int(np.gcd(np.gcd(np.gcd.reduce(above, axis=None), np.gcd.reduce(added, axis=None)), np.gcd.reduce(cuts)))
            or 1
        )
        self.light: IntArray = above // self.scale
        self.full: IntArray = (full - self.shift) // self.scale
        self.low: IntArray = low // self.scale
        self.high: IntArray = high // self.scale
        self.adds = None if self.adds is None else self.adds // self.scale
        self.placeable: BoolArray = placeable
        self.must: BoolArray = problem.must_admit[placeable]
        self.places: IntArray = np.minimum(self.slots, self.must.size)
        if self.may is not None:
            for g in np.flatnonzero(self.places):
                self.places[g] = _most_on(
                    conditions, np.flatnonzero(placeable)[self.may[:, g]], int(g), int(self.places[g])
                )

    @property
    def most_admitted(self) -> int:
        """Most requests that can be admitted.

        No more than have a worker that may take them, and on worker g no more than its slots, nor than those of its
        requests whose needs, taken from the least on, its resources hold.
        """
        return min(int(self.must.size), sum(map(int, self.places)))

    @property
    def least_admitted(self) -> int:
        """Requests that have to be admitted: those named, or as many as the conditions demand."""
        return max(int(self.problem.must_admit.sum()), self.conditions.exactly or 0)

    def bounds(self, admitted: int | None = None) -> tuple[int, ...]:
        """Return lower bounds on the goals, then on the objective.

        Parameters
        ----------
        admitted
            Requests that the decision in question admits; None for any decision.
        """
        goals, exactly = self.conditions.goals, self.conditions.exactly
        most, least = self.most_admitted, self.least_admitted
        floors = {"left_waiting": self.problem.num_requests - most}
        if exactly is not None:
            most = min(most, exactly)
        if "left_waiting" in goals and admitted is not None:
            least = most = admitted
        floors["overdue"] = self._overdue(most)
        objective = self._idle(least, most) + (0 if self.conditions.overdue_first else floors["overdue"])
        return (*(floors[goal] for goal in goals), objective)

    def peaks(self) -> list[int]:
        """Return, for each step, what the largest load is at least, in tokens or units of pace."""
        floors = self._peaks(self.least_admitted, self.most_admitted)
        return [self.scale * floor + shift for floor, shift in zip(floors, self.shift.tolist(), strict=True)]

    def _overdue(self, most: int) -> int:
        """Return the least total cost of waiting where at most `most` requests are admitted."""
        costs = self.conditions.waiting_cost
        if costs is None:
            return 0
        free = np.sort(costs[self.placeable & ~self.problem.must_admit])
        return int(costs[~self.placeable].sum()) + int(free[: max(0, self.must.size - most)].sum())

    def _idle(self, least: int, most: int) -> int:
        """Return the least imbalance where from `least` to `most` requests are admitted.

        With Z_h the imbalance at h, m_h a lower bound on the largest load there, Z = sum_h Z_h, and `part` a set of
        columns taken together:

        * together: Z(part) >= G sum m_h - sum of loads before - (the most work that `most` requests bring to the part).
        * worker by worker: Z(part) >= sum_g max(0, sum_h (m_h - load of g before) - (the most that its slots take)).

        The parts are each single column (their bounds add up) and the whole window (one set of requests has to serve
        all columns, which single columns do not know).
        """
        floors = np.array(self._peaks(least, most), dtype=np.int64)
        steps = range(floors.size)

        def on(part: list[int]) -> int:
            level, before = int(floors[part].sum()), self.full[:, part].sum(axis=1)
            heaviest = self._heaviest(part)
            workers, held = int(before.size), int(before.sum())
            together = workers * level - held - admitted_total(heaviest, self.must, most, largest=True)
            least = level - before - self._brought(part, most)
            return max(together, int(np.maximum(least, 0).sum()))

        apart = sum(on([h]) for h in steps)
        return self.scale * (apart if floors.size == 1 else max(apart, on(list(steps))))

    def ceilings(self) -> IntArray:
        """Return the largest load that each worker can have, int64 (G, H + 1), in tokens or units of pace."""
        columns = [self.full[:, h] + self._brought([h], self.must.size) for h in range(self.full.shape[1])]
        ceilings: IntArray = self.scale * np.stack(columns, axis=1) + self.shift
        return ceilings

    def _brought(self, part: list[int], most: int) -> IntArray:
        """Return what each worker's slots take of some columns at most, int64 (G,); `most` requests are admitted."""
        slots = np.minimum(self.slots, most)
        if self.may is None or self.adds is None:
            heaviest = np.sort(self._heaviest(part))[::-1]
            return sums_of_first(heaviest, most)[np.minimum(slots, heaviest.size)]
        here = -np.sort(-np.where(self.may, self.adds[:, :, part].sum(axis=2), 0), axis=0)
        brought: IntArray = (here * (np.arange(self.must.size)[:, None] < slots)).sum(axis=0)
        return brought

    def _heaviest(self, part: list[int]) -> IntArray:
        """Return the most that each request brings to some columns, int64 (N',)."""
        most: IntArray
        if self.may is None or self.adds is None:
            most = self.high[:, part].sum(axis=1)
            return most
        most = np.where(self.may, self.adds[:, :, part].sum(axis=2), 0).max(axis=1, initial=0)
        return most

    def _peaks(self, least: int, most: int) -> list[int]:
        """Return, for each h, a lower bound on the largest load, reduced; from `least` to `most` are admitted.

        A maximum M is at least

        * every load before, and the mean load with the lightest admissible set rounded up;
        * the least M with sum_g min(M, load of g before + the heaviest works for its slots) >= that load: a worker with
          few slots cannot get its share, so others carry more than the mean;
        * the load of g plus the smallest works that g must take because the slots elsewhere do not suffice;
        * what a request that has to be admitted leads to on its best worker;
        * what counting the largest of these among the workers says, see `counting_floor`;
        * and where all are admitted, what the same sentences say of the slots that a level leaves a use for, see
          `raised`.
        """
        places = np.minimum(self.places, most)
        possible = int(self.must.sum()) <= least <= min(sum(places.tolist()), self.must.size)
        floors = []
        for h in range(self.light.shape[1]):
            column = _Column(self, h, least)
            if not possible:  # nothing keeps the rules
                floors.append(max(column.mean, int(column.light.max())))
                continue
            floor = column.floor(places)
            if least == self.must.size:
                floor = raised(floor, column.light, places, column.ascending, column.floor)
            floors.append(floor)
        return floors


class _Column:
    """One step of the window, where at least `count` requests are admitted."""

    def __init__(self, floors: Floors, h: int, count: int) -> None:
        self.light, self.full, low = floors.light[:, h], floors.full[:, h], floors.low[:, h]
        self.count, self.ascending = count, np.sort(low)
        self.heaviest = sums_of_first(np.sort(floors.high[:, h])[::-1], low.size)
        self.lightest = sums_of_first(self.ascending, low.size)
        self.total = int(self.light.sum()) + admitted_total(low, floors.must, count, largest=False)
        self.mean = -(-self.total // self.light.size)
        bound = floors.must if count < low.size else np.ones_like(floors.must)
        self.bound = np.sort(low[bound])[::-1]
        self.ends: IntArray | None = None
        if floors.may is not None and floors.adds is not None:
            self.ends = np.where(floors.may, self.light + floors.adds[:, :, h], _NO_WORKER)[bound]

    def floor(self, slots: IntArray) -> int:
        """Return what the largest load is at least where workers take at most so many requests."""
        forced = np.maximum(0, self.count - int(slots.sum()) + slots)
        floor = max(int(self.light.max()), self.mean, int((self.light + self.lightest[forced]).max()))
        if self.bound.size:
            if self.ends is None:
                ends = int(self.bound[0]) + int(self.light[slots > 0].min())
            else:
                ends = int(np.where(slots > 0, self.ends, _NO_WORKER).min(axis=1).max())
            floor = max(floor, ends, counting_floor(self.light, slots, self.bound))
        return _least_level(self.full + self.heaviest[slots], self.total, floor)


def _pairs(problem: StepProblem, conditions: Conditions) -> tuple[BoolArray, IntArray]:
    """Return which worker may take which request, bool (N, G), and what it adds there, int64 (N, G, H + 1)."""
    G, N = problem.num_workers, problem.num_requests
    may = np.ones((N, G), dtype=np.bool_) if conditions.allowed is None else conditions.allowed.copy()
    may &= problem.slots > 0
    for resource in conditions.resources:
        may &= resource.need[:, None] <= resource.limit
    adds = np.repeat(problem.work[:, None, :], G, axis=1)
    if conditions.credit is not None:
        adds -= conditions.credit[:, :, None] * (adds > 0)
    if conditions.pace is not None:
        adds *= conditions.pace[None, :, None]
    return may, adds


def _most_on(conditions: Conditions, requests: IntArray, g: int, most: int) -> int:
    """Return how many of these requests worker g can take, `most` at most, by its resources."""
    for resource in conditions.resources:
        held = np.cumsum(np.sort(resource.need[requests])[:most])
        most = min(most, int((held <= resource.limit[g]).sum()))
    return min(most, requests.size)


def raised(
    floor: int, base: IntArray, slots: IntArray, ascending: IntArray, floor_with: Callable[[IntArray], int]
) -> int:
    """Return the floor raised by what it says of fewer slots: of those that a level leaves a use for.

    A level that all loads keep lets no worker hold more requests than the smallest of all allow. If these slots are too
    few, or the floor with them is above the level, the level is refuted, and all below it. Steps double from the floor
    until one is not refuted, then what is between is halved.

    Parameters
    ----------
    floor
        What the largest load is at least, tokens; no base load is above it.
    base, slots
        int64 (G,): loads before, and free slots.
    ascending
        int64 (N,): sizes of the requests, all of which are admitted, smallest first.
    """

    def refuted(level: int) -> bool:
        used = slots_in_use(base, slots, ascending, level)
        return int(used.sum()) < ascending.size or floor_with(used) > level

    below, step = floor - 1, 1
    while refuted(below + step):
        below, step = below + step, 2 * step
    open_at = below + step
    while open_at - below > 1:
        middle = (below + open_at) // 2
        below, open_at = (middle, open_at) if refuted(middle) else (below, middle)
    return open_at


def slots_in_use(base: IntArray, slots: IntArray, ascending: IntArray, level: int) -> IntArray:
    """Return the slots that a worker can use with no load above a level, all requests being as small as the smallest.

    Parameters
    ----------
    base, slots
        int64 (G,): loads before, and free slots.
    ascending
        int64 (N,): sizes of the requests, smallest first.
    level
        Tokens, no base load above it.
    """
    most = np.searchsorted(sums_of_first(ascending, ascending.size), level - base, side="right") - 1
    return np.minimum(slots, most)


def counting_floor(base: IntArray, slots: IntArray, descending: IntArray) -> int:
    """Return what the largest load is at least, because the largest requests are so many for so few workers.

    Take the n largest, and the least c with sum_g min(slots_g, c) >= n. Either some worker holds c + 1 of them or more,
    and so at least the c + 1 smallest of these n; or k = n - sum_g min(slots_g, c - 1) workers or more hold c, and so
    together at least the k c smallest of these n, of which one of them bears the mean. The floor is the less of the
    two, with the least base loads that there are for it, and the best over all n.

    Parameters
    ----------
    base, slots
        int64 (G,): loads before, and free slots, none more than there are requests to admit.
    descending
        int64 (n,): sizes of requests that are all admitted, largest first.
    """
    count, best = descending.size, 0
    top = sums_of_first(descending, count)
    places = np.unique(slots[slots > 0])
    low, filled = 0, 0  # workers hold up to `low` each, `filled` together
    for high in places.tolist():
        wide = np.sort(base[slots >= high])
        wider = base[slots > high]
        lightest = sums_of_first(wide, wide.size)
        n = np.arange(filled + 1, min(count, filled + (high - low) * wide.size) + 1)
        c = low - (filled - n) // wide.size
        k = n - filled - (c - 1 - low) * wide.size
        shared = -(-(top[n] - top[n - k * c] + lightest[k]) // k)
        roomy = np.where(c < high, wide[0], wider.min(initial=_NO_WORKER))
        crowded = np.where(n > c, top[n] - top[np.maximum(0, n - c - 1)] + roomy, _NO_WORKER)
        best = max(best, int(np.minimum(shared, crowded).max(initial=0)))
        low, filled = high, filled + (high - low) * wide.size
    return best


def _least_level(most: IntArray, total: int, low: int) -> int:
    """Return the least level >= `low` at which loads of at most `most` hold `total`; there is one."""
    high = max(low, int(most.max()))
    while low < high:
        middle = (low + high) // 2
        if int(np.minimum(most, middle).sum()) >= total:
            high = middle
        else:
            low = middle + 1
    return low


def admitted_total(weights: IntArray, must_admit: BoolArray, count: int, *, largest: bool) -> int:
    """Return the largest (or least) total weight of `count` requests that include all of `must_admit`.

    Parameters
    ----------
    weights
        int64 (N,), weight of each request.
    must_admit
        bool (N,), whether a request must be among them.
    largest
        Whether the largest total is asked for; else the least.
    """
    forced, free = weights[must_admit], np.sort(weights[~must_admit])
    chosen = (free[::-1] if largest else free)[: max(0, count - forced.size)]
    return int(forced.sum()) + int(chosen.sum())


def sums_of_first(values: IntArray, most: int) -> IntArray:
    """Return the sums of the first 0, 1, ..., `most` values, int64; of all where there are fewer."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values[:most])])


def prefix_sums(values: Sequence[int]) -> list[int]:
    """Return the sums of the first 0, 1, ... values."""
    return list(accumulate(values, initial=0))
