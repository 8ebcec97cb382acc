"""The engine for the solver packages, which take integer programs: one goal after the other, each held at what it
reached, then the objective.

A solver's module has one function, `minimise`. Here its values are rounded to the nearest integers and checked against
every rule, and its claimed bound is rounded up. It is started only with numbers that it can handle. A claim counts only
where no known decision refutes it, and at numbers at which the claims of the solver were found to hold;
`lbopt.solvers.registry` has both ranges.

A goal may take half of the time that is left. Where it stays open it is held at what was reached, so that the objective
gets its share of a limit that is too short.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbopt.model import StepProblem
from lbopt.model.formulation import LinearProgram, Program
from lbopt.solvers.backend import RawAnswer, Task, load, placement, rounded_up
from lbopt.solvers.budget import Budget
from lbopt.solvers.elementary import elementary_bounds
from lbopt.solvers.engine import Bound, Decision, Engine, Known
from lbopt.solvers.registry import is_available

_LOG = logging.getLogger(__name__)

#: Coefficients of loads up to which a program is written down: some 3 GB as Python integers.
MOST_COEFFICIENTS = 1 << 24

#: Why a solver is not started -> where it stops.
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
        plain = self.problem.conditions is None
        if plain and self.problem.num_admitted == 0:
            return "no requests"
        if not is_available(self.name):
            return "package"
        if plain and too_wide(self.problem):
            return "memory"
        largest = self.capabilities.largest_total
        return "numbers" if largest is not None and self.question.program.total > largest else None

    def run(self, known: Known, budget: Budget) -> Known:
        """Ask the solver for what is open, goal after goal; ties are not broken."""
        if known.closed:
            return known
        left = budget.remaining()
        stop = "time" if left is not None and left <= 0 else _STOPS.get(self.refusal() or "")
        if stop is not None:
            floors = elementary_bounds(self.problem, known.best)
            return known.joined(replace(known, bounds=floors, stop=stop, solver=self.solver, final=True))
        run = _Run(self, known.best, budget)
        for place in range(len(run.program.goals) + 1):
            if not run.goal(place):
                break
        elementary = elementary_bounds(self.problem, run.best)
        bounds = [max(floor, run.claims.get(place, floor), key=_value) for place, floor in enumerate(elementary)]
        return known.joined(
            replace(known, best=run.best, bounds=tuple(bounds), stop=run.stop, solver=self.solver, final=True)
        )


class _Run:
    """One solver on one problem, goal after goal."""

    def __init__(self, engine: ProgramEngine, best: Decision | None, budget: Budget) -> None:
        self.engine, self.best, self.budget = engine, best, budget
        self.program: Program = engine.question.program
        self.trusted = engine.capabilities.trusts(self.program.total)
        self.claims: dict[int, Bound] = {}
        self.stop = "done"

    def goal(self, place: int) -> bool:
        """Minimise one goal, or the objective after the last; return whether to go on with the next."""
        problem, program, best = self.program.problem, self.program, self.best
        if best is not None and best.rank[place] == elementary_bounds(problem, best)[place].value:
            return True
        left = self.budget.remaining()
        if left is not None and left <= 0:
            return self._end("time")
        if left is not None and place < len(program.goals):
            left /= 2
        stage = program.for_goal(place, [] if best is None else best.rank[:place])
        start = None if best is None else program.encode(best.assignment.tolist(), best.pauses())
        task = Task(program=stage, hint=start, time_limit=left, seed=self.budget.seed)
        return self._heard(load(self.engine.name).minimise(task), place, stage)

    def _heard(self, raw: RawAnswer, place: int, stage: LinearProgram) -> bool:
        """Take in what a solver says of one goal; return whether to go on with the next."""
        if raw.stop == "infeasible" and self.best is None:
            return self._end("infeasible" if self.trusted else "refused")
        found, claim = decoded(self.program, raw.values), rounded_up(raw.bound)
        if found is not None and (self.best is None or found.rank <= self.best.rank):
            self.best = found
        if raw.stop == "failed":
            return self._end("failed")
        bound = None if claim is None else stage.tokens(claim)
        reached = None if self.best is None else self.best.rank[place]
        refuted = bound is not None and reached is not None and bound > reached
        if raw.stop == "infeasible" or refuted or (raw.values is not None and found is None):
            _LOG.warning(
                "%s answered '%s' with bound %s on problem %s, where %s is reached: the answer is wrong and not used",
                *(self.engine.solver, raw.native_status, raw.bound, self.program.problem.digest[:12], reached),
            )
            return self._end("contradicted")
        if bound is not None and self.trusted:
            self.claims[place] = Bound(bound, f"claimed:{self.engine.solver}")
        if raw.stop == "interrupted" or (raw.stop != "done" and self.best is None):
            return self._end(raw.stop)
        if raw.stop != "done":
            self.stop = raw.stop
        elif not self.trusted and self.stop == "done":
            self.stop = "refused"
        return self.best is not None or self._end("failed")

    def _end(self, stop: str) -> bool:
        self.stop = stop
        return False


def _value(bound: Bound) -> int:
    return bound.value


def decoded(program: Program, values: Sequence[float] | None) -> Decision | None:
    """Return the decision of a solver's values, rounded and checked; None where they give no feasible one."""
    workers = placement(program, values)
    if workers is None or values is None:
        return None
    return Decision.of(program.problem, workers.tolist(), program.paused([round(value) for value in values]))
