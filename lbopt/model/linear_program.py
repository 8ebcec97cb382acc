"""An integer program as plain arrays of exact Python integers: what every solver and every writer of files reads."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.model.step_problem import StepProblem


@dataclass(frozen=True, slots=True)
class Row:
    """One linear row, lower <= sum of coefficient * variable <= upper; None means no limit."""

    name: str
    columns: tuple[int, ...]
    coefficients: tuple[int, ...]
    lower: int | None
    upper: int | None


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """Minimise ``cost . x`` over integers x within `lower`, `upper` and `rows`.

    The objective in tokens is `scale * (offset + cost . x)`. `total` is the largest value that G * sum_h M_h can take
    in reduced units, or a row where that is larger: the scale that decides which solvers can be trusted.
    """

    problem: StepProblem
    names: tuple[str, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    cost: tuple[int, ...]
    rows: tuple[Row, ...]
    offset: int
    scale: int
    total: int

    def tokens(self, value: int) -> int:
        """Turn a value of ``cost . x`` into the objective in tokens."""
        return self.scale * (self.offset + value)
