"""Real costs to integers: each is multiplied by a power of two, which is exact, and rounded to the nearest integer.

A power may leave the range of float64 where the product does not, so it comes as two factors, each near its root. Both
loops become vector code: float64 numbers without their signs are in the order of their bits, NaN above infinity, so the
largest can be found among integers, whose order no NaN breaks.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

_ALL_BUT_SIGN = (1 << 63) - 1


@kernel
def largest_size(bits: Ints) -> int:
    """Return the bits of the largest absolute value; `bits` are those of float64 numbers, one after the other."""
    largest = 0
    for i in range(bits.size):
        largest = max(largest, bits[i] & _ALL_BUT_SIGN)
    return largest


@kernel
def scaled(costs: Floats, factor: float, factor_too: float) -> Ints:
    """Return round(costs * factor * factor_too), halves to even, of a one-dimensional array."""
    out = np.empty(costs.size, dtype=np.int64)
    for i in range(costs.size):
        out[i] = np.int64(np.rint(costs[i] * factor * factor_too))
    return out


@kernel
def count_lost(costs: Floats, integers: Ints) -> int:
    """Return how many costs, (E,), are not zero and have become the integer zero."""
    lost = 0
    for i in range(costs.size):
        lost += int((integers[i] == 0) & (costs[i] != 0.0))  # both sides, so that it becomes vector code
    return lost
