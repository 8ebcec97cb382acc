"""The engine for the solver packages, which take integer programs.

A solver's module has one function, `minimise`. Here its values are rounded to the nearest integers and checked, and its
claimed bound is rounded up. It is started only with numbers that it can handle, and its claims are used only in the
range in which they were found to hold; `lbopt.solvers.registry` has both ranges.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbopt.model import StepProblem
from lbopt.solvers.backend import Task, load, placement, rounded_up
from lbopt.solvers.budget import Budget
from lbopt.solvers.engine import Answer, Engine, Knowledge, not_started
from lbopt.solvers.leximax import break_ties
from lbopt.solvers.registry import is_available

#: Coefficients of loads up to which a program is written down: some 3 GB as Python integers.
MOST_COEFFICIENTS = 1 << 24

#: Why a solver is not started -> the stop of its answer.
_STOPS = {"numbers": "refused", "memory": "memory"}


def too_wide(problem: StepProblem) -> bool:
    """Return whether the integer program would take too much memory: a variable for each size and open worker."""
    each = int((problem.slots > 0).sum()) * (problem.horizon + 2)
    if problem.num_requests * each <= MOST_COEFFICIENTS:
        return False
    return len(np.unique(problem.work, axis=0)) * each > MOST_COEFFICIENTS


class ProgramEngine(Engine):
    """A solver on the integer program of a question."""

    def refusal(self) -> str | None:
        """Return why the solver cannot answer, a key of `REFUSALS`; None where it can."""
        if self.question.problem.num_admitted == 0:
            return "no requests"
        if not is_available(self.name):
            return "package"
        if too_wide(self.question.problem):
            return "memory"
        largest = self.capabilities.largest_total
        return "numbers" if largest is not None and self.question.program.total > largest else None

    def run(self, known: Knowledge, budget: Budget) -> None:
        """Start the solver from the assignment of `known`."""
        left = budget.remaining()
        if left is not None and left <= 0:
            self._answer = not_started("time")
            return
        refusal = self.refusal()
        if refusal in _STOPS:
            self._answer = not_started(_STOPS[refusal])
            return
        program = self.question.program
        assert known.assignment is not None, "elementary reasoning comes first"
        start = program.encode(known.assignment.tolist())
        task = Task(program=program, hint=start, time_limit=left, seed=budget.seed, tie=self.question.tie)
        raw = load(self.name).minimise(task)
        found, claim = placement(program, raw.values), rounded_up(raw.bound)
        self._answer = Answer(
            assignment=found,
            bound=None if claim is None else program.tokens(claim),
            proof=f"claimed:{self.solver}",
            stop="failed" if raw.stop == "infeasible" else raw.stop,  # every plain problem has a solution
            tie=raw.tie,
            claimed=True,
            trusted=self.capabilities.trusts(program.total),
            broken=raw.values is not None and found is None,
            as_written=(raw.native_status, raw.bound),
        )

    def break_ties(self, known: Knowledge, budget: Budget) -> Knowledge:
        """Break ties among optima by stages; they add up loads in tokens, so these have to be in the safe range too."""
        if self.breaks_ties or not known.closed or too_wide(self.question.problem):
            return known
        program, problem = self.question.program, self.question.problem
        tokens = program.scale * program.total + problem.num_workers * sum(program.shift)
        if not self.capabilities.trusts(tokens):
            return known
        assert known.assignment is not None, "it is closed"
        start = program.encode(known.assignment.tolist())
        minimise = load(self.name).minimise
        values, ending = break_ties(minimise, program, start, remaining=budget.remaining, seed=budget.seed)
        return replace(
            known,
            assignment=np.array(program.decode(values), dtype=np.int64),
            reason="interrupted" if ending == "interrupted" else known.reason,
            tie="leximax" if ending == "done" else "any",
        )
