"""Costs as exact integers, by one named rule.

Rule: integer costs are taken as they are. Real costs are multiplied by 2**e and rounded to the nearest integer (halves
to even), e being the largest exponent for which the largest absolute cost A, so multiplied, keeps

    N * A <= 2**62          (no total of N costs leaves int64), and
    2 * (K + 2) * A <= 2**58    (nor does any path of price differences through all centres, with room for two more).

The product is exact, so only the rounding errs, by at most half a unit of 2**-e each: an assignment that is optimal for
the integers costs at most N * 2**-e more than the least real total. Costs that are multiples of 2**-e, whole numbers
among them, lose nothing.

Forbidden pairs are left out of all this. Masked entries and +infinity are forbidden (SciPy's `linear_sum_assignment`
reads infinity so, too); NaN and -infinity are refused. Costs of less than half a unit become zero; a warning says how
many, since a choice among them is then by chance.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.costs import Candidates, Pairs, split
from lbopt.exceptions import InputError
from lbopt.kernels.assignment.costs import count_lost, scaled
from lbopt.kernels.assignment.state import FORBIDDEN
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
        Masked entries and +infinity are forbidden, and hold `lbopt.kernels.assignment.state.FORBIDDEN` afterwards.

    Raises
    ------
    InputError
        If costs are no matrix of numbers, have no column, are NaN or -infinity, or are integers beyond the rule above.
    """
    pairs, exponent = _of_matrix(costs)
    return pairs.costs, exponent


def scaled_pairs(costs: Any) -> tuple[Pairs, int | None]:
    """Return the same as pairs, listed where `costs` are candidates or a sparse matrix."""
    if hasattr(costs, "tocsr"):
        costs = Candidates.of_sparse(costs)
    if not isinstance(costs, Candidates):
        return _of_matrix(costs)
    points, centres = costs.shape
    most, exponent = largest_cost(points, centres), None
    if costs.cost.dtype.kind == "f":
        cost, exponent = scaled_reals(costs.cost.astype(np.float64), most)
    else:
        ends = (costs.cost.min(), costs.cost.max()) if costs.cost.size else (0,)
        largest = max(abs(int(end)) for end in ends)
        if largest > most:
            raise InputError(f"a candidate costs {largest} in size; {_may_be(points, centres, most)}")
        cost = costs.cost.astype(np.int64)
    return Pairs.of_lists(centres, costs.start, costs.centre, cost), exponent


def _of_matrix(costs: Any) -> tuple[Pairs, int | None]:
    given = _matrix(costs)
    points, centres = given.shape
    most = largest_cost(points, centres)
    if given.dtype.kind in "iu":
        values, allowed = split(given) if isinstance(given, np.ma.MaskedArray) else (given, None)
        if values.size:
            low, high = int(values.min()), int(values.max())
            if max(-low, high) > most:
                i, k = np.argwhere(values == (high if high >= -low else low))[0]
                raise InputError(f"costs[{i}, {k}] is {values[i, k]}; {_may_be(points, centres, most)}")
        integers, exponent = np.ascontiguousarray(values, dtype=np.int64), None
    else:
        real, allowed = _reals(given)
        integers, exponent = scaled_reals(real.reshape(-1), most)
        integers = integers.reshape(real.shape)
    if allowed is None or allowed.all():
        return Pairs.of_matrix(integers), exponent
    return Pairs.of_matrix(np.where(allowed, integers, FORBIDDEN), gaps=True), exponent


def _reals(given: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return contiguous costs with 0 where they are forbidden, and what may be used; None for all."""
    allowed = None
    if not isinstance(given, np.ma.MaskedArray):
        real = np.ascontiguousarray(given, dtype=np.float64)
        if math.isfinite(largest_size(real.reshape(-1))):
            return real, None
        given = real
    values, allowed = split(given)
    real = np.ascontiguousarray(values, dtype=np.float64)
    if not math.isfinite(largest_size(real.reshape(-1))):
        i, k = np.argwhere(~np.isfinite(real))[0]
        raise InputError(
            f"costs[{i}, {k}] is {real[i, k]}; expected finite costs: mask a pair that must not be used, or give "
            "it +inf"
        )
    return real, allowed


def scaled_reals(values: NDArray[np.float64], most: int) -> tuple[IntArray, int]:
    """Return finite reals, (E,) and contiguous, as integers of at most `most` in size, and the exponent of the scale.

    Warns
    -----
    UserWarning
        If some that are not zero become zero.
    """
    largest = largest_size(values)
    exponent = exponent_below(largest, most)
    integers = integers_of(values, exponent)
    warn_of_lost(count_lost(values, integers), values.size, largest, exponent)
    return integers, exponent


def integers_of(values: NDArray[np.float64], exponent: int) -> IntArray:
    """Return round(values * 2**exponent), halves to even, of a contiguous (E,) array."""
    half = exponent // 2
    return scaled(values, math.ldexp(1.0, half), math.ldexp(1.0, exponent - half))


def warn_of_lost(lost: int, size: int, largest: float, exponent: int) -> None:
    """Warn that costs are lost in the scaling, if any are.

    Parameters
    ----------
    lost, size
        Costs that are not zero and become zero, and all costs.
    """
    if lost:
        warnings.warn(
            f"{lost} of {size} costs are not zero and count as zero: the largest, {largest:g}, makes the unit of the "
            f"integer scale 2**{-exponent} = {math.ldexp(1.0, -exponent):.3g}; if it stands for a pair that must not "
            "be used, mask it or make it +inf",
            UserWarning,
            stacklevel=6,
        )


def largest_size(values: NDArray[np.float64]) -> float:
    """Return the largest absolute value, NaN or infinity if there is one."""
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _may_be(points: int, centres: int, most: int) -> str:
    return (
        f"integer costs of {points} points and {centres} centres may be at most {most} in size: divide them, or give "
        "them as floats, which are scaled"
    )


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
        given = costs if isinstance(costs, np.ma.MaskedArray) else np.asarray(costs)
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
