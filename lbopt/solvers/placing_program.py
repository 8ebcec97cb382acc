"""CP-SAT on programs that place requests on units: a binary for each pair, the tokens of each unit as an expression.

No enforcement literals, one worker and a seed, for the reasons in `solvers.cp_sat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError, LbOptError
from lbopt.model.integers import IntArray
from lbopt.solvers.backend import run_interruptible
from lbopt.solvers.registry import require

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


class PlacingProgram:
    """A model with the rows that all placements share; the caller adds its own and its objective.

    Parameters
    ----------
    load
        int (D,), tokens that each unit has without the requests.
    cost
        int64 (n, D), tokens that each request adds to each unit.
    place_all
        Whether each request goes to a unit; else it may go nowhere.
    chunk
        Largest number of tokens that the caller's own rows speak of; 0 where they speak of loads alone.
    kind
        Units of different kinds are kept apart although they have equal loads and costs.
    """

    def __init__(
        self,
        load: IntArray,
        cost: NDArray[np.int64],
        *,
        place_all: bool,
        chunk: int = 0,
        kind: Sequence[int] | None = None,
    ) -> None:
        trusted = require("cp-sat").largest_safe_total
        total = sum(load.tolist()) + sum(cost.max(axis=1, initial=0).tolist())
        if trusted is not None and max(total, chunk) >= trusted:
            raise InputError(
                f"the batch has {total} tokens and a chunk of {chunk}, but CP-SAT can be trusted only below "
                f"{trusted}; count in blocks of tokens, or give a smaller chunk"
            )
        from ortools.sat.python import cp_model

        self.model: cp_model.CpModel = cp_model.CpModel()
        self._load, self._cost = load, cost
        n, D = cost.shape
        self.on = [[self.model.new_bool_var(f"x[{r},{d}]") for d in range(D)] for r in range(n)]
        for r in range(n):
            if place_all:
                self.model.add_exactly_one(self.on[r])
            else:
                self.model.add_at_most_one(self.on[r])
        costs = cost.tolist()
        self.tokens: list[Any] = [int(load[d]) + sum(costs[r][d] * self.on[r][d] for r in range(n)) for d in range(D)]
        self._order_equal_units([0] * D if kind is None else kind)

    def hint(self, unit: NDArray[np.int64]) -> None:
        """Start from a placement."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for r, row in enumerate(self.on):
            for d, variable in enumerate(row):
                self.model.add_hint(variable, int(unit[r] == d))

    def solve(self, time_limit: float | None, seed: int) -> tuple[NDArray[np.int64] | None, int | None]:
        """Return the unit of each request (-1: nowhere), None where none was found, and the bound it claims."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed % 2**31
        solver.parameters.catch_sigint_signal = False
        if hasattr(solver.parameters, "presolve_inclusion_work_limit"):
            solver.parameters.presolve_inclusion_work_limit = 0
        if time_limit is not None:
            solver.parameters.max_time_in_seconds = max(time_limit, 1e-3)
        statuses: list[cp_model.CpSolverStatus] = []
        if run_interruptible(lambda: statuses.append(solver.solve(self.model)), solver.stop_search):
            raise KeyboardInterrupt
        if statuses[0] in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):
            raise LbOptError(f"CP-SAT says {solver.status_name(statuses[0])} of a placement problem that has solutions")
        if statuses[0] == cp_model.UNKNOWN:
            return None, None  # the bound that it then reports need not be one
        bound = round(solver.best_objective_bound)
        unit = np.full(len(self.on), -1, dtype=np.int64)
        for r, row in enumerate(self.on):
            for d, variable in enumerate(row):
                if solver.boolean_value(variable):
                    unit[r] = d
        return unit, bound

    def _order_equal_units(self, kind: Sequence[int]) -> None:
        """Let units that nothing distinguishes have falling loads: any placement can be renumbered so."""
        groups: dict[tuple[int, int, bytes], int] = {}
        for d in range(self._load.size):
            seen = (kind[d], int(self._load[d]), self._cost[:, d].tobytes())
            if seen in groups:
                self.model.add(self.tokens[groups[seen]] >= self.tokens[d])
            groups[seen] = d
