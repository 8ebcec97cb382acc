"""From a solver's floats to exact integers: values to the nearest, bounds up with a stated tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite

import numpy as np

from lbopt.exceptions import InfeasibleDecisionError, LbOptError
from lbopt.model import check_assignment
from lbopt.model.formulation import Program
from lbopt.model.integers import IntArray

#: A bound may be too large by 1e-6 (the solvers' feasibility tolerance) or one part in 1e9 (their arithmetic).
ABSOLUTE_TOLERANCE = 1e-6
RELATIVE_TOLERANCE = 1e-9


def rounded_up(bound: float | None) -> int | None:
    """Return the least integer that the bound leaves possible; None for no bound or an infinite one.

    The relative part is 1e-9, not 1e-6: with the latter no program whose cost exceeds 5e5 could ever be closed. Both
    together stay below 1/2 in the whole range in which a solver's bounds are used at all.
    """
    if bound is None or isinstance(bound, int):
        return bound
    if not isfinite(bound):
        return None
    return ceil(bound - max(ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE * abs(bound)))


def repaired(program: Program, values: Sequence[float]) -> list[int] | None:
    """Return the core values nearest to `values` with M_h recomputed from the counts, or None where they fit no row."""
    if not all(map(isfinite, values)):
        return None
    try:
        assignment = program.decode([round(value) for value in values[: program.num_core]])
    except LbOptError:
        return None
    return program.encode(assignment)


def placement(program: Program, values: Sequence[float] | None) -> IntArray | None:
    """Return the assignment of a solver's values, rounded and checked, or None where they give no feasible one."""
    core = None if values is None else repaired(program, values)
    if core is None:
        return None
    try:
        return check_assignment(program.problem, np.array(program.decode(core), dtype=np.int64))
    except InfeasibleDecisionError:
        return None
