"""Exponents: the slope of a straight line through logarithms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the exponent of `x` in `y` by least squares on logarithms, for values without error."""
    return float(np.polynomial.polynomial.polyfit(np.log(x), np.log(y), 1)[1])


def fitted_slope(x: Sequence[float], y: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Return the same exponent for values with standard errors, and its own standard error.

    The values are independent and weigh alike, so that the exponent is that of `slope` on average; each contributes the
    variance of its logarithm, (error / value)^2.
    """
    logs = np.log(np.asarray(x, np.float64))
    weight = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
    values = np.asarray(y, np.float64)
    relative = np.asarray(errors, np.float64) / values
    return float(weight @ np.log(values)), float(np.sqrt(np.sum((weight * relative) ** 2)))
