"""Exhaustion under conditions: request after request, then pause after pause, in exact integers.

Members of one kind go to workers in ascending order, as nothing tells them apart. Loads start with everything paused
that may pause, and a request that runs on adds its work, so that loads only grow: the largest loads reached so far stay
below the final ones. A branch is left where the goals and the objective that it must reach are not below the best rank
that is known. So a finished run proves that nothing better exists.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

from lbopt.model.paced_numbers import PacedNumbers, RequestKind
from lbopt.solvers.conditions.decision import Decision

#: Choices after each other; a chain of more would be too deep for Python, however few its leaves are.
DEEPEST = 300

_NODES_A_LOOK = 256


class _Stopped(Exception):
    """Its text is the reason."""


def leaf_estimate(numbers: PacedNumbers) -> int:
    """Return an upper bound on the number of leaves: how each kind spreads over its workers, times the pauses."""
    leaves = 1 << len(numbers.running)
    for kind in numbers.kinds:
        places = len(kind.work) + (not kind.must_admit)
        leaves *= comb(len(kind.members) + places - 1, places - 1) if places else 1
    return leaves


def too_deep(numbers: PacedNumbers) -> bool:
    """Return whether there are too many choices after each other."""
    return numbers.problem.num_requests + len(numbers.running) > DEEPEST


def exhausted(
    numbers: PacedNumbers, best: Decision | None, stopped: Callable[[], str | None] = lambda: None
) -> tuple[Decision | None, str]:
    """Return the best decision, and "done", "interrupted" or what stopped it; None where there is none, or none yet.

    Parameters
    ----------
    numbers
        The problem.
    best
        A decision that is known; the answer is not worse.
    stopped
        Returns why to stop, as `Limits.stopped` does; None for going on.
    """
    search = _Search(numbers, best, stopped)
    try:
        search.run()
    except _Stopped as why:
        return search.best, str(why)
    except KeyboardInterrupt:
        return search.best, "interrupted"
    return search.best, "done"


class _Search:
    def __init__(self, numbers: PacedNumbers, best: Decision | None, stopped: Callable[[], str | None]) -> None:
        conditions = numbers.problem.conditions
        assert conditions is not None, "a plain problem has another exhaustion"
        self.numbers, self.stopped, self.best = numbers, stopped, best
        self.best_rank = None if best is None else best.rank(numbers.problem)
        self.exactly, self.goals = conditions.exactly, conditions.goals
        self.chain: list[tuple[RequestKind, int, bool]] = [
            (kind, i, nth > 0) for kind in numbers.kinds for nth, i in enumerate(kind.members)
        ]
        brought = [max((sum(row) for row in kind.work.values()), default=0) for kind, _, _ in self.chain]
        brought += [one.work for one in numbers.running]
        self.to_come = [sum(brought[place:]) for place in range(len(brought) + 1)]
        self.loads = [list(row) for row in numbers.lightest]
        self.slots, self.rooms = list(numbers.slots), [list(limit) for limit in numbers.limits]
        self.workers = [-1] * numbers.problem.num_requests
        self.pauses = [False] * len(numbers.running)
        self.nodes = 0

    def run(self) -> None:
        if any(kind.must_admit and not kind.work for kind in self.numbers.kinds):
            return
        peaks = tuple(map(max, zip(*self.loads, strict=True)))
        self._request(0, 0, 0, 0, peaks, sum(map(sum, self.loads)))

    def _hopeless(self, place: int, waiting: int, overdue: int, price: int, peaks: tuple[int, ...], held: int) -> bool:
        """Return whether no completion is better than the best decision; parts of a rank only grow."""
        self.nodes += 1
        why = self.stopped() if self.nodes % _NODES_A_LOOK == 0 else None
        if why is not None:
            raise _Stopped(why)
        if self.best_rank is None:
            return False
        return self._least_rank(place, waiting, overdue, price, peaks, held) >= self.best_rank

    def _least_rank(
        self, place: int, waiting: int, overdue: int, price: int, peaks: tuple[int, ...], held: int
    ) -> tuple[int, ...]:
        idle = len(self.loads) * sum(peaks) - held - self.to_come[place]
        values = {"left_waiting": waiting, "overdue": overdue}
        added = 0 if "overdue" in self.goals else overdue
        return (*(values[goal] for goal in self.goals), max(0, idle) + price + added)

    def _request(self, place: int, lowest: int, waiting: int, overdue: int, peaks: tuple[int, ...], held: int) -> None:
        """Place the next request, or let it wait; one like the request before goes to a worker from `lowest` on."""
        if self._hopeless(place, waiting, overdue, 0, peaks, held):
            return
        if self.exactly is not None:
            admitted = place - waiting
            if admitted > self.exactly or admitted + len(self.chain) - place < self.exactly:
                return
        if place == len(self.chain):
            self._pause(0, waiting, overdue, 0, peaks, held)
            return
        kind, i, same = self.chain[place]
        for g, work in kind.work.items():
            if (same and g < lowest) or not self.slots[g]:
                continue
            if any(room[g] < need for room, need in zip(self.rooms, kind.needs, strict=True)):
                continue
            before = self.loads[g]
            self.loads[g] = [a + b for a, b in zip(before, work, strict=True)]
            self.slots[g] -= 1
            for room, need in zip(self.rooms, kind.needs, strict=True):
                room[g] -= need
            self.workers[i] = g
            higher = tuple(map(max, peaks, self.loads[g]))
            self._request(place + 1, g, waiting, overdue, higher, held + sum(work))
            self.workers[i] = -1
            for room, need in zip(self.rooms, kind.needs, strict=True):
                room[g] += need
            self.slots[g] += 1
            self.loads[g] = before
        if not kind.must_admit:  # who waits comes last in its kind, so that the others of it wait as well
            nobody = len(self.loads)
            self._request(place + 1, nobody, waiting + 1, overdue + kind.waiting_cost, peaks, held)

    def _pause(self, r: int, waiting: int, overdue: int, price: int, peaks: tuple[int, ...], held: int) -> None:
        """Let the next running request run on, or pause it."""
        place = len(self.chain) + r
        if self._hopeless(place, waiting, overdue, price, peaks, held):
            return
        if r == len(self.pauses):
            self.best_rank = self._least_rank(place, waiting, overdue, price, peaks, held)
            self.best = Decision.of(self.numbers.problem, self.workers, self.pauses)
            return
        one = self.numbers.running[r]
        self.loads[one.worker][0] += one.work
        higher = (max(peaks[0], self.loads[one.worker][0]), *peaks[1:])
        self._pause(r + 1, waiting, overdue, price, higher, held + one.work)
        self.loads[one.worker][0] -= one.work
        self.pauses[r] = True
        self._pause(r + 1, waiting, overdue, price + one.cost, peaks, held)
        self.pauses[r] = False
