"""CP-SAT on programs that place requests on units: a binary for each pair, the tokens of each unit as an expression.

No enforcement literals, one worker and a seed, for the reasons in `solvers.cp_sat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError, LbOptError
from lbopt.prefill.exact.batch import PrefillBatch
from lbopt.solvers.backend import require
from lbopt.solvers.interruptible import run_interruptible

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


class PlacingProgram:
    """A model with the rows that all placements share; the caller adds its own and its objective.

    Units of another `kind` are told apart although they have equal loads and costs.
    """

    def __init__(self, batch: PrefillBatch, *, place_all: bool, kind: Sequence[int] | None = None) -> None:
        trusted = require("cp-sat").largest_safe_total
        total = sum(batch.load.tolist()) + sum(batch.length.tolist())
        if trusted is not None and max(total, batch.chunk if not place_all else 0) >= trusted:
            raise InputError(
                f"the batch has {total} tokens and a chunk of {batch.chunk}, but CP-SAT can be trusted only below "
                f"{trusted}; count in blocks of tokens, or give a smaller chunk"
            )
        from ortools.sat.python import cp_model

        self.model: cp_model.CpModel = cp_model.CpModel()
        self.batch = batch
        n, D = batch.num_requests, batch.num_units
        self.on = [[self.model.new_bool_var(f"x[{r},{d}]") for d in range(D)] for r in range(n)]
        for r in range(n):
            if place_all:
                self.model.add_exactly_one(self.on[r])
            else:
                self.model.add_at_most_one(self.on[r])
        cost = batch.cost.tolist()
        self.tokens: list[Any] = [
            int(batch.load[d]) + sum(cost[r][d] * self.on[r][d] for r in range(n)) for d in range(D)
        ]
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
        unit = np.full(self.batch.num_requests, -1, dtype=np.int64)
        for r, row in enumerate(self.on):
            for d, variable in enumerate(row):
                if solver.boolean_value(variable):
                    unit[r] = d
        return unit, bound

    def _order_equal_units(self, kind: Sequence[int]) -> None:
        """Let units that nothing distinguishes have falling loads: any placement can be renumbered so."""
        groups: dict[tuple[int, int, bytes], int] = {}
        cost = self.batch.cost
        for d in range(self.batch.num_units):
            seen = (kind[d], int(self.batch.load[d]), cost[:, d].tobytes())
            if seen in groups:
                self.model.add(self.tokens[groups[seen]] >= self.tokens[d])
            groups[seen] = d
