"""Laws that are fitted: what was observed, which laws there are, and one law fitted to one group.

Laws that are linear in their parameters: from loads to a step time, or to a throughput.

Each law is a design matrix of what it needs and, for the reciprocal, a transformed response. `constant` is there as a
yardstick: a law that does not predict a left-out row better than the mean of the others has found nothing.

Sources: BalanceRoute's tables support straight lines in some groups and concave laws in others; the heaviest load is
the barrier of BF-IO (eq. 6), the mean term that of The EP Barrier Tax (section 1).

What was observed: rows of one group, measured under the same conditions, in the units that the laws use.

One law fitted to one group of observations, with its errors in the unit of the response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.fit.least_squares import LeastSquares, least_squares
from lbopt.spec import unknown

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


Kind = Literal["tokens", "time", "throughput", "other"]

#: The unit in which a kind of column is fitted and shown.
UNITS: dict[Kind, str] = {"tokens": "ktok", "time": "ms", "throughput": "tok/s", "other": ""}


@dataclass(frozen=True, slots=True)
class Variable:
    """A column by its name in the file, the thing it measures ("spread", "tpot", ...) and its kind.

    `factor` turns the file's numbers into the unit in which they are fitted.
    """

    column: str
    stem: str
    kind: Kind
    factor: float = 1.0

    @property
    def unit(self) -> str:
        """The unit in which it is fitted and shown."""
        return UNITS[self.kind]


@dataclass(frozen=True, slots=True)
class Observations:
    """Rows of one group.

    Parameters
    ----------
    group
        Its name; empty where the file has no groups.
    y
        float64 (n,): ms, or tokens per second, all above zero.
    columns
        By role, float64 (n,) in ktokens (in the file's own unit where that is not known), none negative.
    labels
        A name a row: method, or the line of the file.
    workers
        Number of workers, where the file says it and the group has one.
    """

    group: str
    y: NDArray[np.float64]
    columns: Columns
    labels: tuple[str, ...]
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of a source, by group; `regressors` name the column of each role."""

    source: str
    response: Variable
    regressors: dict[Role, Variable]
    groups: tuple[Observations, ...]

    def of(self, group: str) -> Observations:
        """Return one group by its name."""
        names = [one.group for one in self.groups]
        if group not in names:
            if names == [""]:
                raise InputError(f"{self.source} has no groups; name their column with --group, or leave out '{group}'")
            raise unknown(f"group of {self.source}", group, names)
        return self.groups[names.index(group)]


@dataclass(frozen=True, slots=True)
class LawFit:
    """A law and its fit.

    `numbers` is in the scale of the fit, which for the reciprocal law is 1000 / y; `residuals` and `left_out`,
    float64 (n,), are in the unit of the response for every law, so that laws can be compared by them.
    """

    law: Law
    numbers: LeastSquares
    residuals: NDArray[np.float64]
    left_out: NDArray[np.float64]

    @property
    def left_out_error(self) -> float:
        """Root mean square of the errors of predicting each row from all others; infinite where one cannot be."""
        return float(np.sqrt(np.mean(self.left_out**2)))

    def predict(self, columns: Columns) -> NDArray[np.float64]:
        """Return y for other rows, float64 (n,)."""
        if not self.law.needs:
            return np.full(next(iter(columns.values())).size, self.numbers.estimates[0])
        return self.law.back(self.law.design(columns) @ self.numbers.estimates)


def fit_law(law: Law, observed: Observations) -> LawFit:
    """Fit a law by least squares.

    Raises
    ------
    InputError
        Too few rows; a column with the same value in every row; a logarithm of zero.
    """
    for role in law.needs:
        values = observed.columns[role]
        if values.size > 1 and np.ptp(values) <= 1e-12 * np.abs(values).max():
            raise InputError(
                f"all {values.size} rows have the same {role} ({values[0]:g}): no slope can be estimated; vary the load"
            )
        if law.positive and (values <= 0).any():
            raise InputError("a row has x = 0, which has no logarithm")
    numbers = least_squares(law.design(observed.columns), law.transform(observed.y))
    with np.errstate(over="ignore"):
        predicted = law.back(law.transform(observed.y) - numbers.left_out)
    return LawFit(
        law=law,
        numbers=numbers,
        residuals=observed.y - law.back(numbers.fitted),
        left_out=np.where(np.isinf(numbers.left_out), np.inf, observed.y - predicted),
    )


def laws_for(rows: Rows) -> tuple[Law, ...]:
    """Return the laws whose columns are there; the reciprocal only where the response is a rate."""
    return tuple(
        law
        for law in LAWS.values()
        if set(law.needs) <= set(rows.regressors) and (not law.reciprocal or rows.response.kind == "throughput")
    )
