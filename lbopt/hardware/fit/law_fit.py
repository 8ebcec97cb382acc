"""One law fitted to one group of observations, with its errors in the unit of the response."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.fit.law import LAWS, Columns, Law
from lbopt.hardware.fit.least_squares import LeastSquares, least_squares
from lbopt.hardware.fit.observations import Observations, Rows, Variable


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


def slope_unit(response: Variable, regressor: Variable) -> str:
    """Return the unit of a slope, e.g. "ms/ktok"."""
    return f"{response.unit or 'y'}/{regressor.unit or 'x'}"
