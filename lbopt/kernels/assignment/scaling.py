"""Real costs to integers: each is multiplied by a power of two, which is exact, and rounded to the nearest integer.

A power may leave the range of float64 where the product does not, so it comes as two factors, each near its root.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel


@kernel
def largest_finite(costs: Floats) -> tuple[float, int, int]:
    """Return the largest absolute cost, and row and column of the first that is not finite (-1, -1: all are)."""
    largest = 0.0
    for i in range(costs.shape[0]):
        finite = True
        for k in range(costs.shape[1]):
            size = abs(costs[i, k])
            finite &= size < np.inf  # false for NaN, too
            largest = max(largest, size)
        if not finite:
            for k in range(costs.shape[1]):
                if not np.isfinite(costs[i, k]):
                    return largest, i, k
    return largest, -1, -1


@kernel
def scaled(costs: Floats, factor: float, factor_too: float) -> Ints:
    """Return round(costs * factor * factor_too), halves to even."""
    out = np.empty(costs.shape, dtype=np.int64)
    for i in range(costs.shape[0]):
        for k in range(costs.shape[1]):
            out[i, k] = np.int64(np.rint(costs[i, k] * factor * factor_too))
    return out
