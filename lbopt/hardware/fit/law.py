"""Laws that are linear in their parameters: from loads to a step time, or to a throughput.

Each law is a design matrix of what it needs and, for the reciprocal, a transformed response. `constant` is there as a
yardstick: a law that does not predict a left-out row better than the mean of the others has found nothing.

Sources: BalanceRoute's tables support straight lines in some groups and concave laws in others; the heaviest load is
the barrier of BF-IO (eq. 6), the mean term that of The EP Barrier Tax (section 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

#: What a law may need of a row: `x`, the measure of imbalance; the heaviest load; the mean load. All in ktokens.
Role = Literal["x", "max_load", "mean_load"]
Columns = Mapping[Role, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Law:
    """A law y = f(columns; parameters), linear in its parameters after `transform` of y.

    Parameters
    ----------
    name, formula
        As shown; y is the response.
    parameters
        Letters of the formula, in the order of the design's columns.
    needs
        Roles of the columns it reads.
    design
        From the columns, each float64 (n,), to float64 (n, p).
    reciprocal
        Whether 1000 / y is fitted instead of y; only a rate has such a law, whose inverse is a time.
    positive
        Whether x must be above zero, as its logarithm is taken.
    """

    name: str
    formula: str
    parameters: tuple[str, ...]
    needs: tuple[Role, ...]
    design: Callable[[Columns], NDArray[np.float64]]
    reciprocal: bool = False
    positive: bool = False

    def transform(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is linear in the parameters."""
        return 1000.0 / y if self.reciprocal else y

    def back(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return y from `transform`ed values; infinite where a reciprocal is zero or less, which no rate can be."""
        if not self.reciprocal:
            return z
        return np.where(z > 0, 1000.0 / np.where(z > 0, z, 1.0), np.inf)


def _with_ones(*columns: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([np.ones_like(columns[0]), *columns])


def _constant(columns: Columns) -> NDArray[np.float64]:
    return np.ones((next(iter(columns.values())).size, 1))


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law("constant", "c", ("c",), (), _constant),
        Law("linear", "c + k x", ("c", "k"), ("x",), lambda of: _with_ones(of["x"])),
        Law("square root", "c + k √x", ("c", "k"), ("x",), lambda of: _with_ones(np.sqrt(of["x"]))),
        Law("logarithmic", "p + q ln x", ("p", "q"), ("x",), lambda of: _with_ones(np.log(of["x"])), positive=True),
        Law("reciprocal", "1000 / (u + v x)", ("u", "v"), ("x",), lambda of: _with_ones(of["x"]), reciprocal=True),
        Law("heaviest", "c + k max", ("c", "k"), ("max_load",), lambda of: _with_ones(of["max_load"])),
        Law(
            "heaviest and mean",
            "c + a max + b mean",
            ("c", "a", "b"),
            ("max_load", "mean_load"),
            lambda of: _with_ones(of["max_load"], of["mean_load"]),
        ),
    )
}
