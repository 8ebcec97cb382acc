"""A problem under conditions in Python's integers: loads in units of pace, and requests that nothing tells apart.

What does not matter any more is gone: a request has work only on the workers that may take it, with a free slot and
room for it alone. Searches, bounds and the integer program under conditions read these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lbopt.model.objective import work_on
from lbopt.model.step_problem import StepProblem

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RequestKind:
    """Requests that nothing tells apart.

    Parameters
    ----------
    members
        Their numbers, in ascending order.
    must_admit
        Whether they have to be admitted.
    waiting_cost
        What leaving one of them waiting costs.
    needs
        What one takes of each resource.
    work
        Worker -> work there over the window, in units of pace; only workers that may take one.
    """

    members: tuple[int, ...]
    must_admit: bool
    waiting_cost: int
    needs: Row
    work: dict[int, Row]

    def least(self, columns: Sequence[int]) -> int:
        """Return the least work that one brings to some columns, over the workers that may take it."""
        return min(sum(row[h] for h in columns) for row in self.work.values())

    def most(self, columns: Sequence[int]) -> int:
        """Return the most work that one brings to some columns."""
        return max(sum(row[h] for h in columns) for row in self.work.values())


@dataclass(frozen=True, slots=True)
class Running:
    """A running request that may pause: its worker, its work in column 0 in units of pace, and what a pause costs."""

    worker: int
    work: int
    cost: int


@dataclass(frozen=True, slots=True)
class PacedNumbers:
    """All numbers of a problem under conditions.

    Parameters
    ----------
    problem
        The step problem.
    base
        Load of each worker over the window with nothing placed and nothing paused, in units of pace.
    lightest
        The same with everything paused that may pause.
    slots
        Free slots of each worker.
    limits
        Of each resource, what is free on each worker.
    kinds
        The waiting requests, those that must be admitted first, then the heaviest first.
    running
        What may pause.
    """

    problem: StepProblem
    base: tuple[Row, ...]
    lightest: tuple[Row, ...]
    slots: Row
    limits: tuple[Row, ...]
    kinds: tuple[RequestKind, ...]
    running: tuple[Running, ...]

    @property
    def columns(self) -> range:
        """The steps of the window."""
        return range(len(self.base[0]))

    def forced(self) -> int:
        """Return how many requests have to be admitted by name."""
        return sum(len(kind.members) for kind in self.kinds if kind.must_admit)


def paced_numbers(problem: StepProblem) -> PacedNumbers:
    """Return the numbers of a problem that has conditions."""
    conditions = problem.conditions
    assert conditions is not None, "a plain problem has reduced loads"
    G = problem.num_workers
    pace = [1] * G if conditions.pace is None else conditions.pace.tolist()
    base = [[pace[g] * load for load in row] for g, row in enumerate(problem.base.tolist())]
    lightest = [list(row) for row in base]
    running = []
    if conditions.running_worker is not None:
        assert conditions.running_work is not None and conditions.pause_cost is not None, "they come together"
        triples = zip(conditions.running_worker, conditions.running_work[:, 0], conditions.pause_cost, strict=True)
        for g, work, cost in ((int(g), int(work), int(cost)) for g, work, cost in triples):
            running.append(Running(g, pace[g] * work, cost))
            lightest[g][0] -= pace[g] * work
    return PacedNumbers(
        problem=problem,
        base=tuple(map(tuple, base)),
        lightest=tuple(map(tuple, lightest)),
        slots=tuple(problem.slots.tolist()),
        limits=tuple(tuple(resource.limit.tolist()) for resource in conditions.resources),
        kinds=_kinds(problem, pace),
        running=tuple(running),
    )


def _kinds(problem: StepProblem, pace: list[int]) -> tuple[RequestKind, ...]:
    conditions, G, N = problem.conditions, problem.num_workers, problem.num_requests
    assert conditions is not None, "the caller has asked"
    costs = np.zeros(N, dtype=np.int64) if conditions.waiting_cost is None else conditions.waiting_cost
    needs = [resource.need for resource in conditions.resources]
    may = np.ones((N, G), dtype=np.bool_) if conditions.allowed is None else conditions.allowed.copy()
    may &= problem.slots > 0
    for resource in conditions.resources:
        may &= resource.need[:, None] <= resource.limit
    columns = [problem.work, problem.must_admit[:, None], costs[:, None], *(need[:, None] for need in needs), may]
    if conditions.credit is not None:
        columns.append(conditions.credit)
    table = np.concatenate([part.astype(np.int64) for part in columns], axis=1)
    groups: dict[bytes, list[int]] = {}
    for i in range(N):
        groups.setdefault(table[i].tobytes(), []).append(i)
    kinds = []
    for members in groups.values():
        first = members[0]
        workers = np.flatnonzero(may[first])
        rows = work_on(problem, np.full(workers.size, first), workers).tolist()
        work = {g: tuple(pace[g] * w for w in row) for g, row in zip(workers.tolist(), rows, strict=True)}
        kinds.append(
            RequestKind(
                members=tuple(members),
                must_admit=bool(problem.must_admit[first]),
                waiting_cost=int(costs[first]),
                needs=tuple(int(need[first]) for need in needs),
                work=work,
            )
        )
    return tuple(sorted(kinds, key=_order))


def _order(kind: RequestKind) -> tuple[bool, int, Row]:
    heaviest = max((sum(row) for row in kind.work.values()), default=0)
    return not kind.must_admit, -heaviest, kind.members
