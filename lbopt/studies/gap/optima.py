"""The best placement of each state, by `lbopt.solve`."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.simulator import SampledState
from lbopt.solvers import solve
from lbopt.solvers.registry import compiled
from lbopt.studies.gap.outcome import SolvedState


@dataclass(frozen=True, slots=True)
class Budget:
    """By which solver each state is solved, in how many seconds and units of work (None = no limit), and which seed."""

    solver: str
    time_limit: float | None
    seed: int
    effort: int | None = None


def solve_state(state: SampledState, budget: Budget) -> SolvedState:
    """Return the state with its optimum, or with the best known value and bound at the time limit."""
    solver = compiled(budget.solver)
    result = solve(state.problem, solver=solver, time_limit=budget.time_limit, seed=budget.seed, effort=budget.effort)
    if result.stop_reason == "interrupted":  # the solver has caught Ctrl-C; the study has to end, too
        raise KeyboardInterrupt
    return SolvedState(state, result)
