"""A solver of integer programs under conditions: one goal after the other, each held at what it reached.

The rounding and the checks are those of plain problems: values go to the nearest integers and are checked against every
rule, bounds are rounded up, and a claim counts only where no known decision refutes it, and at numbers at which the
claims of the solver were found to hold.

A goal may take half of the time that is left. Where it stays open it is held at what was reached, so that the objective
gets its share of a limit that is too short.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lbopt.model.formulation import Program
from lbopt.solvers.backend import RawAnswer, Task, load, placement, rounded_up
from lbopt.solvers.budget import Budget
from lbopt.solvers.conditions.decision import Bound, Decision, Outcome
from lbopt.solvers.conditions.greedy import elementary_bounds
from lbopt.solvers.registry import capabilities

_LOG = logging.getLogger(__name__)


def minimised(program: Program, name: str, best: Decision | None, budget: Budget) -> Outcome:
    """Return what solver `name` finds and claims.

    Parameters
    ----------
    name
        A solver of `BACKENDS` other than exhaustion.
    best
        A decision that is known; None for none.
    """
    known = capabilities(name)
    if known.largest_total is not None and program.total > known.largest_total:
        return Outcome(best=best, bounds=elementary_bounds(program.problem, best), stop="refused", solver=name)
    run = _Run(program, name, best, budget)
    for place in range(len(program.goals) + 1):
        if not run.goal(place):
            break
    elementary = elementary_bounds(program.problem, run.best)
    bounds = [max(found, run.claims.get(place, found), key=_value) for place, found in enumerate(elementary)]
    return Outcome(best=run.best, bounds=tuple(bounds), stop=run.stop, solver=name)


def _value(bound: Bound) -> int:
    return bound.value


class _Run:
    """One solver on one problem, goal after goal."""

    def __init__(self, program: Program, name: str, best: Decision | None, budget: Budget) -> None:
        self.program, self.name, self.best, self.budget = program, name, best, budget
        self.trusted = capabilities(name).trusts(program.total)
        self.claims: dict[int, Bound] = {}
        self.stop = "done"

    def goal(self, place: int) -> bool:
        """Minimise one goal, or the objective after the last; return whether to go on with the next."""
        problem, program = self.program.problem, self.program
        reached = None if self.best is None else self.best.rank(problem)
        floor = elementary_bounds(program.problem, self.best)[place].value
        if reached is not None and reached[place] == floor:
            return True
        left = self.budget.remaining()
        if left is not None and left <= 0:
            return self._end("time")
        is_last = place == len(program.goals)
        if left is not None and not is_last:
            left /= 2
        stage = program.for_goal(place, [] if reached is None else reached[:place])
        start = None if self.best is None else program.encode(self.best.assignment.tolist(), self.best.pauses())
        task = Task(program=stage, hint=start, time_limit=left, seed=self.budget.seed)
        raw = load(self.name).minimise(task)
        if raw.stop == "infeasible":
            if self.best is None:
                return self._end("infeasible" if self.trusted else "refused")
            return self._contradicted(raw)
        found = decoded(program, raw.values)
        if raw.stop == "failed" or (raw.values is not None and found is None):
            return self._end("failed") if raw.stop == "failed" else self._contradicted(raw)
        if found is not None and (self.best is None or found.rank(problem) < self.best.rank(problem)):
            self.best = found
        claim = rounded_up(raw.bound)
        if claim is not None:
            bound = stage.tokens(claim)
            now = None if self.best is None else self.best.rank(problem)
            if now is not None and bound > now[place]:
                return self._contradicted(raw)
            if self.trusted:
                self.claims[place] = Bound(bound, f"claimed:{self.name}")
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

    def _contradicted(self, raw: RawAnswer) -> bool:
        _LOG.warning(
            "%s answered '%s' with bound %s on problem %s, which a known decision refutes: the answer is not used",
            *(self.name, raw.native_status, raw.bound, self.program.problem.digest[:12]),
        )
        return self._end("contradicted")


def decoded(program: Program, values: Sequence[float] | None) -> Decision | None:
    """Return the decision of a solver's values, rounded and checked; None where they give no feasible one."""
    workers = placement(program, values)
    if workers is None or values is None:
        return None
    return Decision.of(program.problem, workers.tolist(), program.paused([round(value) for value in values]))
