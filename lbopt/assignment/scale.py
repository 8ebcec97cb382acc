"""Costs as exact integers, by one named rule.

Rule: integer costs are taken as they are. Real costs are multiplied by 2**e and rounded to the nearest integer (halves
to even), e being the largest exponent for which the largest absolute cost A, so multiplied, keeps

    N * A <= 2**62          (no total of N costs leaves int64), and
    2 * (K + 2) * A <= 2**58    (nor does any path of price differences through all centres, with room for two more).

The product is exact, so only the rounding errs, by at most half a unit of 2**-e each: an assignment that is optimal for
the integers costs at most N * 2**-e more than the least real total. Costs that are multiples of 2**-e, whole numbers
among them, lose nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.assignment.scaling import largest_size, scaled
from lbopt.model.integers import IntArray

_LARGEST_TOTAL = 2**62

#: No sum of differences of costs on a path through all centres is larger, and prices start no farther from zero.
LARGEST_PATH = 2**58


def scale_costs(costs: Any) -> tuple[IntArray, int | None]:
    """Return integer costs and the exponent e of their scale 2**e; None where they were integers as given.

    Parameters
    ----------
    costs
        (N, K) integers or reals, any unit. Arrays that are int64 and contiguous already are returned themselves.

    Raises
    ------
    InputError
        If costs are no matrix of numbers, have no column, are not finite, or are integers beyond the rule above.
    """
    given = _matrix(costs)
    points, centres = given.shape
    most = largest_cost(points, centres)
    if given.dtype.kind in "iu":
        if given.size:
            low, high = int(given.min()), int(given.max())
            if max(-low, high) > most:
                i, k = np.argwhere(given == (high if high >= -low else low))[0]
                raise InputError(
                    f"costs[{i}, {k}] is {given[i, k]}; integer costs of {points} points and {centres} centres may be "
                    f"at most {most} in size: divide them, or give them as floats, which are scaled"
                )
        return np.ascontiguousarray(given, dtype=np.int64), None
    real = np.ascontiguousarray(given, dtype=np.float64)
    flat = real.reshape(-1)
    largest = float(np.int64(largest_size(flat.view(np.int64))).view(np.float64))
    if not math.isfinite(largest):
        i, k = np.argwhere(~np.isfinite(real))[0]
        raise InputError(
            f"costs[{i}, {k}] is {real[i, k]}; expected finite costs: give a pair that must not be used a cost larger "
            "than any total without it"
        )
    exponent = exponent_below(largest, most)
    half = exponent // 2
    integers = scaled(flat, math.ldexp(1.0, half), math.ldexp(1.0, exponent - half))
    return integers.reshape(real.shape), exponent


def largest_cost(points: int, centres: int) -> int:
    """Return the largest absolute integer cost that the rule allows."""
    return min(_LARGEST_TOTAL // max(1, points), LARGEST_PATH // (2 * (centres + 2)))


def exponent_below(largest: float, most: int) -> int:
    """Return the largest e with largest * 2**e <= most; 0 where `largest` is zero."""
    if largest == 0.0:
        return 0
    fraction, power = math.frexp(largest)  # largest = fraction * 2**power, 1/2 <= fraction < 1
    exponent = most.bit_length() - power
    while math.ldexp(fraction, power + exponent) > most:
        exponent -= 1
    return exponent


def _matrix(costs: Any) -> NDArray[Any]:
    try:
        given = np.asarray(costs)
    except ValueError:
        raise InputError("costs is not a rectangular array of numbers: its rows differ in length or depth") from None
    if given.ndim != 2:
        raise InputError(
            f"costs must be 2-D, a row for each point and a column for each centre; its shape is {given.shape}"
        )
    if given.shape[1] == 0:
        raise InputError(f"costs has shape {given.shape}: there are no centres; expected at least one column")
    if given.dtype.kind == "O" and all(isinstance(value, int) for value in given.flat):
        raise InputError(
            "costs holds whole numbers beyond int64; divide them, or give them as floats, which are scaled"
        )
    if given.dtype.kind not in "biuf":
        raise InputError(f"costs must hold numbers; it holds {given.dtype} values")
    return given.astype(np.int64) if given.dtype.kind == "b" else given
