"""What an engine is: an object that answers one question by three calls, and how its answer is joined with the others.

`refusal` says why an engine cannot answer a question, `run` searches within a budget, and `answer` returns what the
engine knows then. `lbopt.solvers.registry` lists the engines; `lbopt.solvers.solve` asks them.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from lbopt.model import StepProblem, objective
from lbopt.model.formulation import Program, formulate
from lbopt.model.integers import IntArray
from lbopt.model.paced_numbers import PacedNumbers, paced_numbers
from lbopt.solvers.budget import Budget
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.result import PROVED_BY

if TYPE_CHECKING:
    from lbopt.solvers.registry import Capabilities

_LOG = logging.getLogger(__name__)

#: Why an engine cannot answer a question.
REFUSALS = {
    "no requests": "no request can be admitted",
    "window": "the problem has a window, and the engine answers single steps",
    "no window": "the problem has no window",
    "all admitted": "all requests are admitted, which another engine answers",
    "some wait": "some requests have to wait",
    "departures": "requests end within the window or slots stay empty, and the engine has one profile for all",
    "package": "the package of the engine is not installed",
    "numbers": "the numbers are beyond the range in which the engine is started",
    "memory": "the integer program would take too much memory",
    "leaves": "there are too many assignments to try them all",
}


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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answer:
    """What an engine knows after a run.

    Parameters
    ----------
    assignment
        int64 (N,), feasible; None where the engine has none, or none that is better than the hint.
    bound
        Lower bound on the imbalance, tokens; None for none.
    proof
        Where the bound comes from, as in `Result`; None where the engine was not started and so states nothing.
        "certificate" and "enumeration" of a search are its word until `lbopt.solvers.checked` has checked them.
    stop
        "done", or why the engine stopped earlier: a key of `STOP_REASONS`.
    tie
        "leximax" where the engine established that its assignment is the leximax one, else "any".
    evidence
        What writes the certificate of the bound; None where there is no certificate.
    holds
        Checks the bound quickly where that is possible, and returns whether it is established; None for no such check.
    final
        Whether no other engine has to be asked.
    claimed
        Whether the bound is a claim, which is compared with known assignments before it is used.
    trusted
        Whether the claims of the solver are used at the numbers of this problem.
    broken
        Whether the solver returned values that are no feasible assignment.
    as_written
        The status and the bound as the solver wrote them, for the log.
    """

    assignment: IntArray | None
    bound: int | None
    proof: str | None
    stop: str
    tie: str = "any"
    evidence: Callable[[], Certificate] | None = None
    holds: Callable[[], bool] | None = None
    final: bool = True
    claimed: bool = False
    trusted: bool = True
    broken: bool = False
    as_written: tuple[str, float | None] = ("", None)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Knowledge:
    """What all engines asked so far know together; the fields are those of `Answer` and `Result`."""

    problem: StepProblem
    assignment: IntArray | None
    bound: int | None = None
    proof: str | None = None
    reason: str = "refused"
    tie: str = "any"
    evidence: Callable[[], Certificate] | None = None
    holds: Callable[[], bool] | None = None
    final: bool = False

    @property
    def value(self) -> int | None:
        """Imbalance of the best assignment, tokens."""
        return None if self.assignment is None else objective(self.problem, self.assignment)

    @property
    def closed(self) -> bool:
        """Whether the best assignment costs no more than the bound."""
        return self.bound is not None and self.value == self.bound


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
        self.name, self.solver, self.breaks_ties = capabilities.name, capabilities.solver, capabilities.breaks_ties
        self.capabilities, self.question = capabilities, question
        self._answer = not_started("refused")

    @abstractmethod
    def refusal(self) -> str | None:
        """Return why the engine cannot answer, a key of `REFUSALS`; None where it can.

        This is read from the kind and the size of the problem. An engine that meets too large a number during its run
        answers with the stop "refused".
        """

    @abstractmethod
    def run(self, known: Knowledge, budget: Budget) -> None:
        """Search within the budget. The answer is never worse than the assignment of `known`."""

    def answer(self) -> Answer:
        """Return what the engine knows after the run."""
        return self._answer

    def break_ties(self, known: Knowledge, budget: Budget) -> Knowledge:
        """Return `known` with its ties broken as far as that is possible after the run, which mostly has broken them.

        Where `breaks_ties` is false stages do it (`lbopt.solvers.leximax`).
        """
        return known


def not_started(stop: str) -> Answer:
    """Return the answer of an engine that states nothing."""
    return Answer(assignment=None, bound=None, proof=None, stop=stop)


def join(known: Knowledge, engine: Engine, answer: Answer) -> Knowledge:
    """Return what is known after an answer.

    What lbopt proves is taken as it is. The claim of a solver package is dropped with a warning in the log where a
    known assignment refutes it, and is used only at numbers at which the claims of this package were found to hold.
    """
    if answer.proof is None:
        return replace(known, reason=answer.stop)
    if not answer.claimed:
        joined = replace(
            known,
            assignment=known.assignment if answer.assignment is None else answer.assignment,
            bound=answer.bound,
            proof=answer.proof,
            reason="proved" if answer.stop == "done" else answer.stop,
            tie=answer.tie,
            evidence=answer.evidence,
            holds=answer.holds,
            final=answer.final,
        )
        # A search may be cut off when all that was missing is the look at what it has.
        return replace(joined, reason="proved") if joined.closed and answer.stop != "interrupted" else joined
    assert known.assignment is not None and known.bound is not None, "claims are asked for after elementary reasoning"
    problem, best, value = known.problem, known.assignment, objective(known.problem, known.assignment)
    if answer.assignment is not None and objective(problem, answer.assignment) <= value:
        best, value = answer.assignment, objective(problem, answer.assignment)
    bound = known.bound if answer.bound is None else answer.bound
    reason = "claimed" if answer.stop == "done" else answer.stop
    joined = replace(known, assignment=best, reason=reason, tie=answer.tie)
    if bound > value or answer.stop == "failed" or answer.broken:
        _LOG.warning(
            "%s answered '%s' with bound %s on problem %s, where %d is reached: the answer is wrong and not used",
            *(engine.solver, *answer.as_written, problem.digest[:12], value),
        )
        joined = replace(joined, reason="contradicted" if answer.stop != "failed" else "failed")
    elif not answer.trusted:
        joined = replace(joined, reason="refused" if answer.stop == "done" else reason)
    elif bound > known.bound:
        joined = replace(joined, bound=bound, proof=answer.proof)
    if joined.bound == value and joined.proof in PROVED_BY:
        joined = replace(joined, reason="proved")
    if answer.stop == "interrupted":  # the caller has to learn of Ctrl-C, whatever was reached by then
        joined = replace(joined, reason="interrupted")
    return joined
