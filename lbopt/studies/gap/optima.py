"""The best placement of each state, by `lbopt.solve`."""

from __future__ import annotations

from lbopt.simulator import SampledState
from lbopt.solvers import solve
from lbopt.studies.gap.config import GapConfig
from lbopt.studies.gap.outcome import SolvedState


def solve_state(state: SampledState, config: GapConfig) -> SolvedState:
    """Return the state with its optimum, or with the best known value and bound at the time limit."""
    result = solve(state.problem, solver=config.solver, time_limit=config.time_limit, seed=config.seed)
    if result.stop_reason == "interrupted":  # the solver has caught Ctrl-C; the study has to hear of it
        raise KeyboardInterrupt
    return SolvedState(state, result)
