"""A step problem in Python's integers: loads in units of pace, and requests that nothing tells apart.

A plain problem is one that admits exactly U requests and asks nothing else. What does not matter any more is gone: a
request has work only on the workers that may take it, with a free slot and room for it alone. Exhaustion reads these
numbers; under conditions bounds and the integer program do as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lbopt.model.conditions import Conditions, Resource
from lbopt.model.integers import BoolArray
from lbopt.model.objective import work_on
from lbopt.model.step_problem import StepProblem

Row = tuple[int, ...]

#: What a plain problem asks besides the number that it admits.
_NOTHING = Conditions()


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
    """All numbers of a problem.

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
        The waiting requests, the heaviest first.
    running
        What may pause.
    exactly
        How many requests have to be admitted; None where the conditions leave that open.
    goals
        What is made least before the objective, as `Conditions.goals` names it.
    """

    problem: StepProblem
    base: tuple[Row, ...]
    lightest: tuple[Row, ...]
    slots: Row
    limits: tuple[Row, ...]
    kinds: tuple[RequestKind, ...]
    running: tuple[Running, ...]
    exactly: int | None
    goals: tuple[str, ...]

    @property
    def columns(self) -> range:
        """The steps of the window."""
        return range(len(self.base[0]))

    def forced(self) -> int:
        """Return how many requests have to be admitted by name."""
        return sum(len(kind.members) for kind in self.kinds if kind.must_admit)


def paced_numbers(problem: StepProblem) -> PacedNumbers:
    """Return the numbers of a problem."""
    plain, conditions, G = problem.conditions is None, problem.conditions or _NOTHING, problem.num_workers
    pace = [1] * G if conditions.pace is None else conditions.pace.tolist()
    resources = () if plain else conditions.resources
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
        limits=tuple(tuple(resource.limit.tolist()) for resource in resources),
        kinds=_kinds(problem, conditions, resources, pace),
        running=tuple(running),
        exactly=problem.num_admitted if plain else conditions.exactly,
        goals=() if plain else conditions.goals,
    )


def _kinds(
    problem: StepProblem, conditions: Conditions, resources: tuple[Resource, ...], pace: list[int]
) -> tuple[RequestKind, ...]:
    N = problem.num_requests
    rows, must = problem.work.tolist(), problem.must_admit.tolist()
    costs = [0] * N if conditions.waiting_cost is None else conditions.waiting_cost.tolist()
    needs = list(zip(*(resource.need.tolist() for resource in resources), strict=True)) or [()] * N
    tables = [table for table in (conditions.allowed, conditions.credit) if table is not None]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault((*row, must[i], costs[i], *needs[i], *(table[i].tobytes() for table in tables)), []).append(i)
    open_workers = np.flatnonzero(problem.slots).tolist()
    same_everywhere = conditions.credit is None and conditions.pace is None
    kinds = []
    for members in groups.values():
        i = members[0]
        workers = open_workers
        if resources or conditions.allowed is not None:
            workers = _workers_for(problem, conditions.allowed, resources, i)
        if same_everywhere:
            work, heaviest = dict.fromkeys(workers, tuple(rows[i])), sum(rows[i]) if workers else 0
        else:
            on = work_on(problem, np.full(len(workers), i), np.array(workers, dtype=np.int64)).tolist()
            work = {g: tuple(pace[g] * w for w in row) for g, row in zip(workers, on, strict=True)}
            heaviest = max(map(sum, work.values()), default=0)
        kinds.append((-heaviest, members, RequestKind(tuple(members), must[i], costs[i], needs[i], work)))
    # Heaviest first: the order in which both people and searches like to decide.
    return tuple(kind for _, _, kind in sorted(kinds, key=lambda one: one[:2]))


def _workers_for(problem: StepProblem, allowed: BoolArray | None, resources: tuple[Resource, ...], i: int) -> list[int]:
    """Return the workers that could take request i if they took nothing else."""
    may = problem.slots > 0 if allowed is None else allowed[i] & (problem.slots > 0)
    for resource in resources:
        may = may & (resource.need[i] <= resource.limit)
    workers: list[int] = np.flatnonzero(may).tolist()
    return workers
