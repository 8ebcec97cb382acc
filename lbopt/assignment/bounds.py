"""Bounds on the points of each centre, checked: what is refused, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray, integer_array


def checked_bounds(capacity: Any, lower: Any, points: int, centres: int) -> tuple[IntArray, IntArray]:
    """Return lower bounds and capacities, both (K,) int64 and read-only, that some assignment keeps.

    Parameters
    ----------
    capacity
        Most points of each centre: one number for all, or (K,).
    lower
        Fewest points of each centre: one number, (K,), or None for none.
    points, centres
        N and K.

    Raises
    ------
    InputError
        On wrong shapes, negative or fractional entries, lower bounds above capacities, capacities that do not suffice,
        lower bounds that need more points than there are.
    """
    most = _one_each("capacity", capacity, centres)
    least = _one_each("lower", 0 if lower is None else lower, centres)
    above = np.flatnonzero(least > most)
    if above.size:
        k = int(above[0])
        raise InputError(f"lower[{k}] is {least[k]}, above capacity[{k}] = {most[k]}; expected at most that")
    room, needed = sum(most.tolist()), sum(least.tolist())
    if room < points:
        raise InputError(
            f"the capacities add up to {room}, and there are {points} points: {points - room} too few; with {centres} "
            f"centres a capacity of {-(-points // centres)} each would do"
        )
    if needed > points:
        raise InputError(
            f"the lower bounds add up to {needed}, and there are {points} points: {needed - points} too many"
        )
    return least, most


def _one_each(name: str, values: Any, centres: int) -> IntArray:
    given = integer_array(name, values, ndim=(0, 1))
    if given.ndim == 0:
        given = np.full(centres, given, dtype=np.int64)
        given.flags.writeable = False
    if given.shape != (centres,):
        raise InputError(
            f"{name} must be one number or have shape ({centres},), one for each centre; its shape is {given.shape}"
        )
    return given
