"""What is known before any search: a greedy placement, and a lower bound by elementary reasoning.

Plain: admit a set, then place it largest first where it hurts least; the best one wins. Three sets are tried (the
oldest U requests, the largest U, the smallest U; `must_admit` belongs to each) with two rules of placement (the worker
with the least load; the worker whose load raises the envelope least). `solve` never returns anything worse.

Under conditions requests are placed one after the other where they hurt least, in several orders and by the same two
rules, then pauses follow. There may be no such decision although one exists: which requests fit together is a packing
problem, which greedy placement does not solve. Loads are Python's integers there, as pace times load may be large.

Bound: exact integers, see `lbopt.model.floors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lbopt.exceptions import InfeasibleDecisionError
from lbopt.model import WAITS, StepProblem, objective
from lbopt.model.floors import Floors
from lbopt.model.integers import IntArray
from lbopt.model.paced_numbers import PacedNumbers, RequestKind, paced_numbers
from lbopt.solvers.engine import Bound, Decision


def greedy_assignment(problem: StepProblem) -> IntArray:
    """Return the best of the greedy assignments, int64 (N,); ties go to the one tried first.

    Raises
    ------
    InfeasibleDecisionError
        Under conditions, where greedy placement finds none.
    """
    if problem.conditions is not None:
        found = greedy_decision(paced_numbers(problem))
        if found is None:
            raise InfeasibleDecisionError("greedy placement finds no assignment that meets the conditions; `solve` may")
        return found.assignment
    if problem.num_admitted == 0:
        return np.full(problem.num_requests, WAITS, dtype=np.int64)
    candidates = [
        _place(problem, admitted, by_envelope=rule) for admitted in _admitted_sets(problem) for rule in (False, True)
    ]
    return min(candidates, key=lambda assignment: objective(problem, assignment))


def _admitted_sets(problem: StepProblem) -> list[list[int]]:
    size = problem.work.sum(axis=1).tolist()
    forced = np.flatnonzero(problem.must_admit).tolist()
    free = np.flatnonzero(~problem.must_admit).tolist()
    count = problem.num_admitted - len(forced)
    orders = (
        [free]
        if count == len(free)
        else [free, sorted(free, key=lambda i: -size[i]), sorted(free, key=lambda i: size[i])]
    )
    return [sorted(forced + order[:count], key=lambda i: (-size[i], i)) for order in orders]


def _place(problem: StepProblem, admitted: list[int], *, by_envelope: bool) -> IntArray:
    assignment = np.full(problem.num_requests, WAITS, dtype=np.int64)
    loads = problem.base.copy()
    room = problem.slots.copy()
    for i in admitted:
        candidates = np.flatnonzero(room)
        after = loads[candidates] + problem.work[i]
        if by_envelope:
            # Raise of sum_h M_h first, then the least area: a lexicographic choice, stable towards low workers.
            raised = np.maximum(after - loads.max(axis=0), 0).sum(axis=1)
            best = np.lexsort((after.sum(axis=1), raised))[0]
        else:
            best = int(after.sum(axis=1).argmin())
        g = int(candidates[best])
        assignment[i], loads[g] = g, after[best]
        room[g] -= 1
    return assignment


def elementary_bound(problem: StepProblem) -> int:
    """Return what every decision costs at least, in tokens, by the elementary reasoning of `lbopt.model.floors`."""
    return Floors(problem).bounds()[-1]


def greedy_decision(numbers: PacedNumbers) -> Decision | None:
    """Return the best of the greedy decisions; None where all of them break a rule."""
    found: list[Decision] = []
    for order in _orders(numbers):
        for by_envelope in (False, True):
            placed = _Placing(numbers, by_envelope=by_envelope)
            if placed.fill(order):
                found.append(placed.decision())
    return min(found, key=lambda decision: decision.rank, default=None)


def elementary_bounds(problem: StepProblem, best: Decision | None = None) -> tuple[Bound, ...]:
    """Return elementary bounds on the goals and the objective, given what the best known decision reaches."""
    admitted = None if best is None else int((best.assignment >= 0).sum())
    return tuple(Bound(floor, "elementary-bound") for floor in Floors(problem).bounds(admitted))


def _orders(numbers: PacedNumbers) -> list[list[RequestKind]]:
    """Return orders of the kinds, each kind as often as it has members; those that must start come first."""
    keys: list[Callable[[RequestKind], object]] = [
        lambda kind: (-kind.most(numbers.columns), kind.members),
        lambda kind: (kind.needs, kind.most(numbers.columns)),
        lambda kind: (len(kind.work), tuple(-need for need in kind.needs)),
        lambda kind: (-kind.waiting_cost, kind.needs, kind.members),
        lambda kind: kind.members,
    ]
    placeable = [kind for kind in numbers.kinds if kind.work]
    orders = []
    for key in keys:
        kinds = sorted(sorted(placeable, key=key), key=lambda kind: not kind.must_admit)  # type: ignore[arg-type]
        orders.append([kind for kind in kinds for _ in kind.members])
    return orders


class _Placing:
    """Loads and rooms while requests are placed."""

    def __init__(self, numbers: PacedNumbers, *, by_envelope: bool) -> None:
        conditions = numbers.problem.conditions
        assert conditions is not None, "the caller has asked"
        self.numbers, self.by_envelope = numbers, by_envelope
        self.exactly, self.sparing = conditions.exactly, conditions.admit == "free"
        self.waits_cost = not conditions.overdue_first
        self.loads = [list(row) for row in numbers.base]
        self.slots, self.rooms = list(numbers.slots), [list(limit) for limit in numbers.limits]
        self.workers = [-1] * numbers.problem.num_requests
        self.pauses = [False] * len(numbers.running)
        self.count = 0

    def fill(self, order: Sequence[RequestKind]) -> bool:
        """Place in this order; return whether the outcome keeps every rule."""
        taken: dict[int, int] = {}
        for kind in order:
            if not kind.must_admit and self.exactly is not None and self.count == self.exactly:
                break
            g = self._worker(kind)
            if g is None:
                if kind.must_admit:
                    return False
                continue
            nth = taken.get(id(kind), 0)
            taken[id(kind)] = nth + 1
            self.workers[kind.members[nth]] = g
            self.count += 1
            self.slots[g] -= 1
            for room, need in zip(self.rooms, kind.needs, strict=True):
                room[g] -= need
            self.loads[g] = [a + b for a, b in zip(self.loads[g], kind.work[g], strict=True)]
        if self.numbers.forced() > self.count or self.exactly not in (None, self.count):
            return False
        if any(kind.must_admit and not kind.work for kind in self.numbers.kinds):
            return False
        self._pause()
        return True

    def decision(self) -> Decision:
        """Return what was decided."""
        return Decision.of(self.numbers.problem, self.workers, self.pauses)

    def _worker(self, kind: RequestKind) -> int | None:
        """Return the worker on which one of the kind hurts least; None where no one has room, or waiting is better."""
        peaks = [max(column) for column in zip(*self.loads, strict=True)]
        best, choice = None, None
        for g, work in kind.work.items():
            if not self.slots[g] or any(room[g] < need for room, need in zip(self.rooms, kind.needs, strict=True)):
                continue
            after = [a + b for a, b in zip(self.loads[g], work, strict=True)]
            raised = sum(max(0, a - peak) for a, peak in zip(after, peaks, strict=True))
            key = (raised, sum(after)) if self.by_envelope else (sum(after), raised)
            if best is None or key < best:
                best, choice = key, g
                change = len(self.loads) * raised - sum(work)
        if choice is None or kind.must_admit or not self.sparing:
            return choice
        saved = kind.waiting_cost if self.waits_cost else 0
        goal_comes_first = not self.waits_cost and kind.waiting_cost > 0
        return choice if goal_comes_first or change < saved else None

    def _pause(self) -> None:
        """Pause, one after the other, what saves most."""
        while True:
            column = [row[0] for row in self.loads]
            idle = len(column) * max(column) - sum(column)
            best, choice = 0, None
            for r, one in enumerate(self.numbers.running):
                if self.pauses[r]:
                    continue
                column[one.worker] -= one.work
                saved = idle - (len(column) * max(column) - sum(column)) - one.cost
                column[one.worker] += one.work
                if saved > best:
                    best, choice = saved, r
            if choice is None:
                return
            self.pauses[choice] = True
            self.loads[self.numbers.running[choice].worker][0] -= self.numbers.running[choice].work
