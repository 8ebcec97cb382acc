"""What is asked, what is known of it, and what an engine is: an object that adds to what is known.

A decision is an assignment and the running requests that pause. Decisions are compared by their rank: the goals of the
problem in their order, then the objective (`lbopt.model.objective.rank`). A plain problem is one without conditions,
hence without goals before the objective and without pauses.

`refusal` says why an engine cannot answer a question, and `run` searches within a budget. `lbopt.solvers.registry`
lists the engines; `lbopt.solvers.front` asks them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lbopt.model import StepProblem, loads_after, rank
from lbopt.model.formulation import Program, formulate
from lbopt.model.integers import BoolArray, IntArray
from lbopt.model.paced_numbers import PacedNumbers, paced_numbers
from lbopt.solvers.budget import Budget
from lbopt.solvers.certificates import Certificate

if TYPE_CHECKING:
    from lbopt.solvers.registry import Capabilities

#: Why an engine cannot answer a question.
REFUSALS = {
    "no requests": "no request can be admitted",
    "conditions": "the problem has conditions, and the engine answers plain ones",
    "no conditions": "the problem has no conditions",
    "window": "the problem has a window, and the engine answers single steps",
    "no window": "the problem has no window",
    "departures": "requests end within the window or slots stay empty, and the engine has one profile for all",
    "package": "the package of the engine is not installed",
    "numbers": "the numbers are beyond the range in which the engine is started",
    "memory": "the integer program would take too much memory",
    "leaves": "there are too many assignments to try them all",
}


class Decision:
    """Who goes where and who pauses, and what follows from it, which is counted once.

    Parameters
    ----------
    problem
        The step problem.
    assignment
        int64 (N,), worker of each request, -1 where it waits; it must not change any more.
    paused
        bool (R,), which of the running requests sit out the step; None where none may.
    """

    def __init__(self, problem: StepProblem, assignment: IntArray, paused: BoolArray | None = None) -> None:
        self.problem, self.assignment, self.paused = problem, assignment, paused

    @classmethod
    def of(cls, problem: StepProblem, workers: Sequence[int], pauses: Sequence[bool] | None = None) -> Decision:
        """Return the decision for plain lists; without `pauses` none pauses."""
        conditions, paused = problem.conditions, None
        if conditions is not None and conditions.num_pausable > 0:
            paused = np.zeros(conditions.num_pausable, dtype=np.bool_) if pauses is None else np.array(pauses, np.bool_)
        return cls(problem, np.array(workers, dtype=np.int64), paused)

    def pauses(self) -> list[bool]:
        """Return which requests pause as a list, empty where none may."""
        return [] if self.paused is None else self.paused.tolist()

    @cached_property
    def loads(self) -> IntArray:
        """All loads after it, int64 (G, H + 1)."""
        return loads_after(self.problem, self.assignment, self.paused)

    @cached_property
    def rank(self) -> tuple[int, ...]:
        """The goals and the objective."""
        return rank(self.problem, self.assignment, self.paused, self.loads)

    @property
    def shape(self) -> list[int]:
        """All loads from the largest down."""
        return sorted(map(int, self.loads.ravel()), reverse=True)


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on one goal or on the objective, and where it comes from, as in `Result`.

    It holds among the decisions that reach the values of the best known one in all that comes before. "certificate" and
    "enumeration" of a search are its word until `lbopt.solvers.checked` has checked them.
    """

    value: int
    proof: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Known:
    """What the engines asked so far know together.

    Parameters
    ----------
    problem
        The step problem.
    best
        The best decision; None where none is known.
    bounds
        One for each goal, then one for the objective; empty before any engine has answered.
    stop
        "done", or why the last engine stopped earlier: a key of `STOP_REASONS`; "infeasible" where there is no decision
        at all.
    solver
        Who was asked last.
    tie
        "leximax" where an engine established that the decision is the leximax one, else "any".
    evidence
        What writes the certificate of the bounds; None where there is no certificate.
    holds
        Checks the bounds quickly where that is possible, and returns whether they are established; None for no such
        check.
    final
        Whether no other engine has to be asked.
    """

    problem: StepProblem
    best: Decision | None = None
    bounds: tuple[Bound, ...] = ()
    stop: str = "refused"
    solver: str = "none"
    tie: str = "any"
    evidence: Callable[[], Certificate] | None = None
    holds: Callable[[], bool] | None = None
    final: bool = True

    @property
    def closed(self) -> bool:
        """Whether the best decision meets all bounds."""
        return self.best is not None and self.best.rank == tuple([bound.value for bound in self.bounds])

    @property
    def told(self) -> tuple[int | None, int]:
        """Objective and bound for the limits of a solve; no objective where a goal before it is open."""
        if not self.bounds:
            return None, 0
        *goals, bound = (one.value for one in self.bounds)
        if self.best is None or list(self.best.rank[:-1]) != goals:
            return None, bound
        return self.best.rank[-1], bound

    def joined(self, other: Known) -> Known:
        """Return what this and a later answer say together, the second of which began with the decision of the first.

        Bounds of the first hold as far as the second reaches the same in all goals before. A search that would have
        taken more memory has a word in it still.
        """
        if self.best is None or other.best is None or not self.bounds or other.closed:
            return other
        now, then = other.best.rank, self.best.rank
        bounds = tuple(
            mine if now[:place] == then[:place] and mine.value >= theirs.value else theirs
            for place, (mine, theirs) in enumerate(zip(self.bounds, other.bounds, strict=True))
        )
        if self.stop != "memory":
            return replace(other, bounds=bounds)
        stop = other.stop if other.stop in ("interrupted", "time", "cancelled") else self.stop
        evidence = self.evidence if bounds[-1] is self.bounds[-1] else None
        return replace(self, best=other.best, bounds=bounds, stop=stop, evidence=evidence, final=other.final)


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """What is asked.

    Parameters
    ----------
    problem
        The step problem.
    hint
        int64 (N,), a feasible assignment; the answer is never worse. None for none.
    tie
        "any" optimum or the "leximax" one.
    """

    problem: StepProblem
    hint: IntArray | None = None
    tie: str = "any"

    @cached_property
    def numbers(self) -> PacedNumbers:
        """The problem in Python's integers; counted on first use."""
        return paced_numbers(self.problem)

    @cached_property
    def program(self) -> Program:
        """The integer program; written down on first use."""
        return formulate(self.problem, self.numbers)

    def opening(self) -> Known:
        """Return what is known before any engine is asked: the hint, in which nothing pauses."""
        best = None if self.hint is None else Decision.of(self.problem, self.hint.tolist())
        return Known(problem=self.problem, best=best, final=False)


class Engine(ABC):
    """One search on one question.

    Parameters
    ----------
    capabilities
        Its entry in the registry: `name` there, and `solver` as `Result.solver` has it.
    question
        What is asked.
    """

    def __init__(self, capabilities: Capabilities, question: Question) -> None:
        self.capabilities, self.name, self.solver = capabilities, capabilities.name, capabilities.solver
        self.question, self.problem = question, question.problem

    @abstractmethod
    def refusal(self) -> str | None:
        """Return why the engine cannot answer, a key of `REFUSALS`; None where it can.

        This is read from the kind and the size of the problem. An engine that meets too large a number during its run
        answers with the stop "refused".
        """

    @abstractmethod
    def run(self, known: Known, budget: Budget) -> Known:
        """Return what is known after a search within the budget, never worse than before.

        Where "leximax" is asked for ties are broken, too, as far as that is possible.
        """
