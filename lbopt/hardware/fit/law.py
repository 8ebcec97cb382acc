"""Laws that are fitted by least squares: what was observed, which laws there are, and one fitted to one group.

Least squares with what is needed to judge it: standard errors, Student intervals, exact leave-one-out errors.

For a design X = QR (n rows, p parameters) the estimates are R⁻¹Qᵀz, their covariance s² (RᵀR)⁻¹ with
s² = SSE / (n − p), and the leverages h the squared row norms of Q. The error of predicting row i from all others is
r_i / (1 − h_i): exact, no refit is needed (Allen, *The relationship between variable selection and data augmentation
and a method for prediction*, 1974).

Laws that are fitted: what was observed, which laws there are, and one law fitted to one group.

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
from lbopt.spec import unknown
from lbopt.statistics import student_quantile

#: Columns that agree to so many digits, after scaling each to length one, cannot be distinguished.
_SAME = 1e-10


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """A fit of n rows by p parameters; all arrays float64.

    Parameters
    ----------
    estimates, errors, low, high
        (p,) parameters, standard errors, and the ends of their 95 % Student intervals.
    fitted, residuals, leverages
        (n,) fitted values, response less fitted, diagonal of the hat matrix.
    left_out
        (n,) response less its prediction from the other rows; infinite where these do not determine the parameters.
    covariance
        (p, p) of the estimates.
    r_squared
        Share of the variation around the mean that is fitted; NaN where the response does not vary.
    """

    estimates: NDArray[np.float64]
    errors: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    fitted: NDArray[np.float64]
    residuals: NDArray[np.float64]
    leverages: NDArray[np.float64]
    left_out: NDArray[np.float64]
    covariance: NDArray[np.float64]
    r_squared: float

    @property
    def degrees(self) -> int:
        """Residual degrees of freedom, n − p."""
        return self.residuals.size - self.estimates.size

    @property
    def sum_of_squares(self) -> float:
        """Of the residuals, in the unit of the response squared."""
        return float(self.residuals @ self.residuals)

    @property
    def rmse(self) -> float:
        """Root mean square of the residuals with divisor n."""
        return float(np.sqrt(self.sum_of_squares / self.residuals.size))

    @property
    def rmse_unbiased(self) -> float:
        """Root mean square of the residuals with divisor n − p."""
        return float(np.sqrt(self.sum_of_squares / self.degrees))


def least_squares(design: NDArray[np.float64], response: NDArray[np.float64]) -> LeastSquares:
    """Fit `response`, float64 (n,), by the columns of `design`, float64 (n, p).

    Raises
    ------
    InputError
        With no residual degree of freedom (n <= p), or columns of which one follows from the others.
    """
    from scipy.linalg import solve_triangular

    rows, parameters = design.shape
    if rows <= parameters:
        have = f"{rows} row{'s' * (rows != 1)}"
        raise InputError(
            f"{have} cannot judge a law of {parameters} parameter{'s' * (parameters != 1)}; "
            f"give at least {parameters + 1} rows, so that a residual is left"
        )
    lengths = np.linalg.norm(design, axis=0)
    if not lengths.all() or np.linalg.matrix_rank(design / lengths, tol=_SAME * np.sqrt(rows)) < parameters:
        raise InputError("the columns do not vary independently of each other, so their slopes cannot be distinguished")
    q, r = np.linalg.qr(design / lengths)
    estimates = solve_triangular(r, q.T @ response) / lengths
    fitted = q @ (q.T @ response)
    residuals = response - fitted
    variance = float(residuals @ residuals) / (rows - parameters)
    inverse = solve_triangular(r, np.eye(parameters)) / lengths[:, None]
    covariance = variance * inverse @ inverse.T
    errors = np.sqrt(np.diag(covariance))
    half = student_quantile(rows - parameters) * errors
    leverages = np.einsum("ij,ij->i", q, q)
    alone = leverages > 1 - _SAME  # without this row the others do not determine the parameters
    left_out = np.where(alone, np.inf, residuals / np.where(alone, 1.0, 1 - leverages))
    around = response - response.mean()
    total = float(around @ around)
    share = 1 - float(residuals @ residuals) / total if total > 0 else 0.0
    varies = total > 1e-24 * float(response @ response)  # beyond the rounding of its mean
    return LeastSquares(
        estimates=estimates,
        errors=errors,
        low=estimates - half,
        high=estimates + half,
        fitted=fitted,
        residuals=residuals,
        leverages=leverages,
        left_out=left_out,
        covariance=covariance,
        # A constant fits none of it; the rounding of such a sum differs between machines, and can be below 0.
        r_squared=(share if abs(share) > _SAME else 0.0) if varies else float("nan"),
    )


def relative_least_squares(design: NDArray[np.float64], response: NDArray[np.float64]) -> LeastSquares:
    """Fit positive numbers by the sum of squared *relative* errors: every row over its response, against one."""
    return least_squares(design / response[:, None], np.ones(response.size))


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
