"""Exact integers at the border: user arrays become frozen int64 arrays or are refused with a reason.

Everything called *optimal* in lbopt is computed in exact integers, so this is the only door through which numbers
enter the model. Floats are accepted only where they are whole numbers below 2**53, the range in which a float64
still tells neighbours apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: The largest total that a problem may reach: int64 arithmetic stays exact with a factor of two to spare.
LARGEST_TOTAL = 2**62

_LARGEST_EXACT_FLOAT = 2.0**53


def integer_array(name: str, values: Any, *, ndim: tuple[int, ...]) -> IntArray:
    """Return `values` as a non-writeable int64 array of non-negative entries.

    It is a new one, unless the values are such an array already, whole and not a view of another.

    Parameters
    ----------
    name
        What the array is called in error messages.
    values
        Anything that NumPy can turn into an array.
    ndim
        The accepted numbers of dimensions.

    Raises
    ------
    InputError
        On ragged or non-numeric input, a wrong number of dimensions, NaN, a fraction or a negative entry.
    """
    raw = rectangular(name, values)
    if raw.size == 0 and raw.dtype.kind == "f":  # np.asarray([]) is float64
        raw = raw.astype(np.int64)
    if raw.ndim not in ndim:
        wanted = " or ".join(f"{d}-D" for d in ndim)
        raise InputError(f"{name} must be {wanted}; it has shape {raw.shape}")
    if raw.dtype.kind == "O":
        raw = _python_integers(name, raw)
    if raw.dtype.kind == "f":
        _refuse_where(name, raw, ~np.isfinite(raw), "a finite whole number")
        _refuse_where(name, raw, raw != np.floor(raw), "a whole number (scale or round it first)")
        _refuse_where(name, raw, np.abs(raw) > _LARGEST_EXACT_FLOAT, "at most 2**53 when given as a float")
    elif raw.dtype.kind == "u":
        _refuse_where(name, raw, raw > LARGEST_TOTAL, "at most 2**62")
    elif raw.dtype.kind != "i":
        raise InputError(f"{name} must hold whole numbers; it holds {raw.dtype} values")
    is_frozen = raw.dtype == np.int64 and raw.flags.owndata and raw.flags.c_contiguous and not raw.flags.writeable
    exact = raw if is_frozen else np.array(raw, dtype=np.int64, order="C")
    _refuse_where(name, exact, exact < 0, "zero or more")
    _refuse_where(name, exact, exact > LARGEST_TOTAL, f"at most 2**62 = {LARGEST_TOTAL}")
    exact.flags.writeable = False
    return exact


def rectangular(name: str, values: Any) -> NDArray[Any]:
    """Return `values` as an array of whatever they are; rows of different lengths are none."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{name} is not a rectangular array: its rows differ in length or depth") from None


def real_array(name: str, values: Any) -> NDArray[np.float64]:
    """Return `values` as a new float64 array; texts and other objects are no numbers."""
    raw = rectangular(name, values)
    if raw.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers; it holds {raw.dtype} values")
    return np.array(raw, dtype=np.float64, order="C")


def boolean_array(name: str, values: Any, length: int) -> BoolArray:
    """Return `values` as a new, non-writeable bool array of shape (length,); 0 and 1 are accepted."""
    raw = rectangular(name, values)
    if raw.shape != (length,):
        raise InputError(f"{name} must have shape ({length},); it has shape {raw.shape}")
    if raw.dtype.kind in "iu":
        _refuse_where(name, raw, ~np.isin(raw, (0, 1)), "true, false, 0 or 1")
    elif raw.dtype.kind != "b" and raw.size:
        raise InputError(f"{name} must hold truth values (true/false or 0/1); it holds {raw.dtype} values")
    flags = np.array(raw, dtype=np.bool_)
    flags.flags.writeable = False
    return flags


def boolean_table(name: str, values: Any) -> BoolArray:
    """Return `values` as a new, non-writeable bool array of two dimensions; 0 and 1 are accepted.

    An empty list, which has one dimension, stands for a table without rows.
    """
    raw = rectangular(name, values)
    if raw.ndim != 2 and raw.shape != (0,):
        raise InputError(f"{name} must be 2-D; it has shape {raw.shape}")
    flat = raw.reshape(-1)
    if flat.dtype.kind in "iu":
        _refuse_where(name, raw, ~np.isin(raw, (0, 1)), "true, false, 0 or 1")
    return _frozen(boolean_array(name, flat, flat.size).reshape(raw.shape))


def _frozen(flags: BoolArray) -> BoolArray:
    flags.flags.writeable = False
    return flags


def _python_integers(name: str, raw: NDArray[Any]) -> IntArray:
    """Python integers too large for int64 arrive as objects: name the offender rather than wrap it."""
    for place, value in np.ndenumerate(raw):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InputError(f"{name}{list(place)} is {value!r:.60}; expected a whole number")
        number = int(value)
        if abs(number) > LARGEST_TOTAL:
            shown = number if abs(number) < 10**40 else f"a number of {number.bit_length()} bits"
            raise InputError(f"{name}{list(place)} is {shown}; expected at most 2**62 = {LARGEST_TOTAL}")
    return raw.astype(np.int64)


def _refuse_where(name: str, values: NDArray[Any], bad: NDArray[np.bool_], expected: str) -> None:
    if bad.any():
        place = [int(i) for i in np.argwhere(bad)[0]]
        raise InputError(f"{name}{place} is {values[tuple(place)]}; expected {expected}")
