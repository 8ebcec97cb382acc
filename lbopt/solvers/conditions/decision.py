"""A decision under conditions, and what is known of the best one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lbopt.model import StepProblem, loads_after, rank
from lbopt.model.integers import BoolArray, IntArray
from lbopt.solvers.certificates import Certificate


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Who goes where and who pauses.

    Parameters
    ----------
    assignment
        int64 (N,), worker of each request, -1 where it waits.
    paused
        bool (R,), which of the running requests sit out the step; None where none may.
    """

    assignment: IntArray
    paused: BoolArray | None

    @classmethod
    def of(cls, problem: StepProblem, workers: Sequence[int], pauses: Sequence[bool]) -> Decision:
        """Return the decision for plain lists."""
        conditions = problem.conditions
        may_pause = conditions is not None and conditions.num_pausable > 0
        return cls(np.array(workers, dtype=np.int64), np.array(pauses, dtype=np.bool_) if may_pause else None)

    def pauses(self) -> list[bool]:
        """Return which requests pause as a list, empty where none may."""
        return [] if self.paused is None else [bool(flag) for flag in self.paused]

    def shape(self, problem: StepProblem) -> list[int]:
        """Return all loads from the largest down."""
        loads = loads_after(problem, self.assignment, self.paused)
        return sorted(map(int, loads.ravel()), reverse=True)

    def rank(self, problem: StepProblem) -> tuple[int, ...]:
        """Return the goals and the objective."""
        return rank(problem, self.assignment, self.paused)


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on one goal or on the objective, and where it comes from, as in `Result`.

    It holds among the decisions that reach the values of the best known one in all that comes before.
    """

    value: int
    proof: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Outcome:
    """What is known together.

    Parameters
    ----------
    best
        The best decision; None where none is known.
    bounds
        One for each goal, then one for the objective.
    stop
        A key of `STOP_REASONS`, or "infeasible" where there is no decision at all.
    solver
        Who was asked last.
    evidence
        What writes the certificate; None where there is none.
    """

    best: Decision | None
    bounds: tuple[Bound, ...]
    stop: str
    solver: str
    evidence: Callable[[], Certificate] | None = None

    def closed(self, problem: StepProblem) -> bool:
        """Return whether the best decision meets all bounds."""
        return self.best is not None and self.best.rank(problem) == tuple(bound.value for bound in self.bounds)
