"""The best placement of each state, by `lbopt.solve`, started from the best decision that any policy made."""

from __future__ import annotations

from lbopt.simulator import SampledState
from lbopt.solvers import solve
from lbopt.studies.gap.config import GapConfig
from lbopt.studies.gap.outcome import SolvedState


def solve_state(state: SampledState, config: GapConfig) -> SolvedState:
    """Return the state with its optimum, or with the best known value and bound at the time limit."""
    result = solve(state.problem, solver=config.solver, time_limit=config.time_limit, seed=config.seed)
    return SolvedState(state, result)
