"""Least squares with what is needed to judge it: standard errors, Student intervals, exact leave-one-out errors.

For a design X = QR (n rows, p parameters) the estimates are R⁻¹Qᵀz, their covariance s² (RᵀR)⁻¹ with
s² = SSE / (n − p), and the leverages h the squared row norms of Q. The error of predicting row i from all others is
r_i / (1 − h_i): exact, no refit is needed (Allen, *The relationship between variable selection and data augmentation
and a method for prediction*, 1974).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
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
