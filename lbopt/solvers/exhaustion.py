"""Exhaustion: every distribution of kinds of requests over the workers, equal workers ordered, in exact integers.

Worker after worker takes a vector of counts, and one of the sets of its running requests that may pause. Where two
equal workers follow each other the second vector may not be lexicographically larger than the first. A branch is left
when it cannot beat the best known decision any more: the requests that no worker to come may take wait, the maxima are
at least those reached so far and the elementary floors, and what is idle under them is at least what the finished
workers leave idle, plus what the others do with the heaviest requests that remain. So a finished run proves that
nothing better exists. The number of leaves is bounded from above before, and too long a search is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb, factorial, prod

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.model.floors import Floors
from lbopt.model.integers import IntArray
from lbopt.model.paced_numbers import PacedNumbers, Row
from lbopt.solvers.engine import Decision
from lbopt.solvers.registry import LEAF_LIMIT

#: Workers and kinds after each other; a chain of more would be too deep for Python, however few its leaves are.
DEEPEST = 700

_NODES_A_LOOK = 128  # nodes between two looks at the clock: a few milliseconds

#: Returns why to stop, as `Limits.stopped` does; None for going on.
Stopped = Callable[[], str | None]


def most_leaves(numbers: PacedNumbers) -> int | None:
    """Return an upper bound on the leaves of an exhaustion; None where too many choices come after each other."""
    kinds, places = numbers.kinds, _deciding(numbers)
    if len(places) + len(kinds) + len(numbers.running) > DEEPEST:
        return None
    size, workers = numbers.problem.num_requests, len(places)
    all_go = numbers.exactly == size
    # (a) kind by kind: how a kind spreads over its workers and the waiting pool.
    by_kind = 1
    for kind in kinds:
        ways = len(kind.work) + (not (all_go or kind.must_admit))
        by_kind *= comb(len(kind.members) + ways - 1, ways - 1) if ways else 1
    # (b) worker by worker: multisets of at most slots_g kinds; a row of t equal workers takes them in order.
    most = size if numbers.exactly is None else numbers.exactly
    by_worker = 1
    alike = Counter((_key(numbers, g), numbers.slots[g]) for g in places)
    for (_, free), twins in alike.items():
        reach = min(free, most)
        options = comb(len(kinds) + reach, reach)
        by_worker *= comb(options + twins - 1, twins)
    # (c) request by request: choose the admitted, then share them out.
    if numbers.exactly == numbers.problem.num_free_slots:
        by_request = comb(size, most) * factorial(most) // prod(map(factorial, numbers.slots))
    else:
        by_request = (workers + (not all_go)) ** size
    return min(by_kind, by_worker, by_request) << len(numbers.running)


def exhausted(
    numbers: PacedNumbers, best: Decision | None, stopped: Stopped = lambda: None, *, leximax: bool = False
) -> tuple[Decision | None, str]:
    """Return the best decision, and "done", "interrupted" or what stopped it; None where there is none, or none yet.

    Parameters
    ----------
    best
        A decision that is known; the answer is not worse.
    stopped
        Returns why to stop; None for going on.
    leximax
        Whether of equal decisions the one with the least loads, sorted from the largest down, is the best.
    """
    search = _Search(numbers, best, stopped, leximax)
    try:
        search.run()
    except _StoppedError as why:
        return search.best, str(why)
    except KeyboardInterrupt:
        return search.best, "interrupted"
    return search.best, "done"


class _StoppedError(Exception):
    """Its text is the reason."""


def _deciding(numbers: PacedNumbers) -> list[int]:
    """Return the workers that decide something: they can take a request, or have one that may pause."""
    if numbers.problem.conditions is None:
        return [g for g, free in enumerate(numbers.slots) if free]
    return sorted({g for kind in numbers.kinds for g in kind.work} | {one.worker for one in numbers.running})


def _key(numbers: PacedNumbers, g: int) -> tuple[object, ...]:
    """Return what workers share that nothing tells apart."""
    if numbers.problem.conditions is None:
        return (numbers.base[g], numbers.slots[g])
    works = tuple(kind.work.get(g) or () for kind in numbers.kinds)
    pausing = tuple(r for r, one in enumerate(numbers.running) if one.worker == g)
    return (numbers.base[g], numbers.slots[g], tuple(limit[g] for limit in numbers.limits), works, pausing)


class _Search:
    def __init__(self, numbers: PacedNumbers, best: Decision | None, stopped: Stopped, leximax: bool) -> None:
        self.numbers, self.stopped, self.leximax = numbers, stopped, leximax
        self.plain = numbers.problem.conditions is None
        self.kinds = [kind for kind in numbers.kinds if kind.work]
        self.left = [len(kind.members) for kind in self.kinds]
        # Equal workers side by side, so that the order between them can be asked of neighbours.
        keys = {g: _key(numbers, g) for g in _deciding(numbers)}
        self.workers = sorted(keys, key=lambda g: (keys[g], g))
        self.twin = [p > 0 and keys[self.workers[p - 1]] == keys[g] for p, g in enumerate(self.workers)]
        floors = Floors(numbers.problem)
        self.first_peaks, places = tuple(floors.peaks()), floors.places.tolist()
        self.places = [places[g] for g in self.workers]
        self.places_from = [sum(self.places[p:]) for p in range(len(self.places) + 1)]
        self.base_from = [sum(sum(numbers.base[g]) for g in self.workers[p:]) for p in range(len(self.workers) + 1)]
        self.last = [max(p for p, g in enumerate(self.workers) if g in kind.work) for kind in self.kinds]
        self.most = [kind.most(numbers.columns) for kind in self.kinds]
        stay = [kind for kind in numbers.kinds if not kind.work]
        self.stay = sum(len(kind.members) for kind in stay), sum(k.waiting_cost * len(k.members) for k in stay)
        self.modes = [_modes(numbers, g) for g in self.workers]
        self.chosen: list[tuple[list[int], tuple[int, ...]]] = []
        self.loads: list[Row] = [row for g, row in enumerate(numbers.base) if g not in keys]
        self.nodes = 0
        self.best, self.best_rank, self.best_shape = best, None, []
        if best is not None:
            self.best_rank, self.best_shape = best.rank, best.shape

    def run(self) -> None:
        stuck = any(kind.must_admit and not kind.work for kind in self.numbers.kinds)
        if stuck or (self.numbers.exactly or 0) > self.places_from[0]:  # with no worker to decide nothing else asks
            return
        done = tuple(sum(row[h] for row in self.loads) for h in self.numbers.columns)
        self._worker(0, self.numbers.exactly, self.first_peaks, sum(done), 0)

    def _worker(self, p: int, missing: int | None, peak: Row, held: int, price: int) -> None:
        """Decide worker p; `missing` requests are still to be placed, None for any number.

        The workers that are decided hold `held`, summed over the window, and pauses have cost `price`.
        """
        self.nodes += 1
        why = self.stopped() if self.nodes % _NODES_A_LOOK == 0 else None
        if why is not None:
            raise _StoppedError(why)
        least = self._least_rank(p, missing, peak, held, price)
        if self.best_rank is not None and (least > self.best_rank or (least == self.best_rank and not self.leximax)):
            return
        if p == len(self.workers):
            self._leaf(least)
            return
        fewest = 0 if missing is None else max(0, missing - self.places_from[p + 1])
        most = self.places[p] if missing is None else min(self.places[p], missing)
        before = self.chosen[-1][0] if self.twin[p] else None
        g = self.workers[p]
        rooms = [limit[g] for limit in self.numbers.limits]
        for counts, load in self._vectors(0, g, fewest, most, (self.numbers.base[g], rooms), before):
            owed = sum(n for n, kind in zip(self.left, self.kinds, strict=True) if kind.must_admit)
            rest = None if missing is None else missing - sum(counts)
            if owed > (self.places_from[p + 1] if rest is None else rest):
                continue
            for cut, cost, paused in self.modes[p]:
                lighter = (load[0] - cut, *load[1:]) if cut else load
                self.chosen.append((counts, paused))
                self.loads.append(lighter)
                higher = tuple(map(max, peak, lighter))
                self._worker(p + 1, rest, higher, held + sum(lighter), price + cost)
                self.loads.pop()
                self.chosen.pop()

    def _least_rank(self, p: int, missing: int | None, peak: Row, held: int, price: int) -> tuple[int, ...]:
        """Return what no completion is below: goals, then the objective."""
        level, goals = sum(peak), self.numbers.goals
        unfinished = len(self.workers) - p
        most = self.places_from[p] if missing is None else missing
        to_come = self._heaviest(most) if unfinished else 0
        idle = len(self.loads) * level - held + max(0, unfinished * level - self.base_from[p] - to_come)
        if self.plain:
            return (idle,)
        waiting, overdue = self._waiting(p, most)
        values = {"left_waiting": waiting, "overdue": overdue}
        return (*(values[goal] for goal in goals), idle + price + (0 if "overdue" in goals else overdue))

    def _heaviest(self, count: int) -> int:
        """Return the work of the `count` heaviest requests that are left, summed over the window."""
        total = 0
        for size, left in zip(self.most, self.left, strict=True):  # kinds come heaviest first
            taken = min(left, count)
            total += taken * size
            count -= taken
        return total

    def _waiting(self, p: int, most: int) -> tuple[int, int]:
        """Return how many wait at least, and what that costs at least, where workers from p on take `most` more."""
        waiting, overdue = self.stay
        free = []
        for left, kind, last in zip(self.left, self.kinds, self.last, strict=True):
            if last < p:
                waiting, overdue = waiting + left, overdue + left * kind.waiting_cost
            else:
                free.append((kind.waiting_cost, left))
        more = max(0, sum(left for _, left in free) - most)
        waiting += more
        for cost, left in sorted(free):
            taken = min(left, more)
            overdue, more = overdue + taken * cost, more - taken
        return waiting, overdue

    def _vectors(
        self, k: int, g: int, least: int, most: int, so_far: tuple[Row, list[int]], before: list[int] | None
    ) -> Iterator[tuple[list[int], Row]]:
        """Yield count vectors over kinds k.. and the load they lead to; `self.left` is reduced while one is out."""
        load, rooms = so_far
        if k == len(self.kinds):
            if least <= 0:
                yield [], load
            return
        kind, available = self.kinds[k], self.left[k]
        row = kind.work.get(g)
        largest = 0 if row is None else min(available, most, before[k] if before is not None else most)
        if rooms:
            for room, need in zip(rooms, kind.needs, strict=True):
                largest = min(largest, room // need) if need else largest
        for count in range(largest, -1, -1):
            tied = before if before is not None and count == before[k] else None
            after = so_far
            if count and row is not None:
                heavier = tuple(a + count * w for a, w in zip(load, row, strict=True))
                after = heavier, [room - count * need for room, need in zip(rooms, kind.needs, strict=True)]
            self.left[k] = available - count
            for tail, final in self._vectors(k + 1, g, least - count, most - count, after, tied):
                yield [count, *tail], final
        self.left[k] = available

    def _leaf(self, rank: tuple[int, ...]) -> None:
        if any(n and kind.must_admit for n, kind in zip(self.left, self.kinds, strict=True)):
            return
        if self.leximax:
            shape = sorted((load for row in self.loads for load in row), reverse=True)
            if rank == self.best_rank and shape >= self.best_shape:
                return
            self.best_shape = shape
        self.best_rank, self.best = rank, self._decision()

    def _decision(self) -> Decision:
        """Return what was chosen: of equal workers the lower one has more at h = 0, and takes the first of a kind."""
        counts: dict[int, list[int]] = {}
        first = 0
        for p in range(1, len(self.workers) + 1):
            if p < len(self.workers) and self.twin[p]:
                continue
            alike = [self.chosen[q][0] for q in range(first, p)]
            work = [kind.work.get(self.workers[first], (0,))[0] for kind in self.kinds]
            alike.sort(key=lambda own: -sum(n * w for n, w in zip(own, work, strict=True)))
            counts.update(zip(self.workers[first:p], alike, strict=True))
            first = p
        workers = [-1] * self.numbers.problem.num_requests
        for k, kind in enumerate(self.kinds):
            waiting = iter(kind.members)
            for g in sorted(counts):
                for _ in range(counts[g][k]):
                    workers[next(waiting)] = g
        paused = {r for _, own in self.chosen for r in own}
        pauses = [r in paused for r in range(len(self.numbers.running))]
        return Decision.of(self.numbers.problem, workers, pauses)


def _modes(numbers: PacedNumbers, g: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return what each set of the running requests of worker g that may pause takes off its load, its cost, and it."""
    mine = [r for r, one in enumerate(numbers.running) if one.worker == g]
    sets = [own for size in range(len(mine) + 1) for own in combinations(mine, size)]
    running = numbers.running
    return [(sum(running[r].work for r in own), sum(running[r].cost for r in own), own) for own in sets]


def refuse_leaves(numbers: PacedNumbers) -> None:
    """Raise an `InputError` where exhaustion would take too long."""
    leaves = most_leaves(numbers)
    if leaves is None or leaves > LEAF_LIMIT:
        much = "too many choices after each other"
        if leaves is not None:
            much = f"up to {f'{float(leaves):.2g}' if leaves < 10**300 else 'more than 1e+300'} assignments"
        raise InputError(f"exhaustion would visit {much}; brute-force accepts {LEAF_LIMIT:.1g}: choose another solver")


def with_workers_in_order(problem: StepProblem, assignment: IntArray) -> IntArray:
    """Return a copy in which, of workers alike, the lower number has the heavier requests.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    assignment
        int64 (N,), worker of each request, -1 where it waits; it is not changed.
    """
    loads, slots = problem.base[:, 0], problem.slots
    by_kind = np.lexsort((slots, loads))  # stable: ascending numbers within a kind
    same = (np.diff(loads[by_kind]) == 0) & (np.diff(slots[by_kind]) == 0) & (slots[by_kind[1:]] > 0)
    if not same.any():  # the rule in a running fleet, where loads are large and differ
        return assignment.copy()
    new_number = np.arange(loads.size + 1)
    new_number[-1] = -1  # who waits
    placed = np.flatnonzero(assignment >= 0)
    placed = placed[np.lexsort((-problem.work[placed, 0], assignment[placed]))]  # by worker, the largest first
    begin = np.searchsorted(assignment[placed], np.arange(loads.size + 1))
    sizes = problem.work[placed, 0].tolist()
    for alike in np.split(by_kind, np.flatnonzero(~same) + 1):
        if alike.size == 1:
            continue
        content = [sizes[begin[g] : begin[g + 1]] for g in alike]
        new_number[alike[sorted(range(alike.size), key=lambda j: content[j], reverse=True)]] = alike
    return new_number[assignment]
