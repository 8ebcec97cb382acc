"""The unit of arrival times: what the format says, unless the values contradict it.

Numbers that are seconds since 1970 in one unit are in that unit, unless this makes the rate unusual and another unit
does not: then the user is asked. Otherwise a unit is in doubt where it makes the traffic faster or slower than
published traces are (0.01 to 200 requests a second), where most milliseconds have fractions, or where the times are
whole and nothing but a format says the unit: seconds at 0.05 requests a second are milliseconds at 50. The user is
asked if another unit makes the rate usual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import SECONDS, UNITS
from lbopt.exceptions import InputError
from lbopt.instances.readers.values import EPOCH, LARGEST_SECONDS

#: Requests a second of a trace whose unit is not in doubt. A unit that the format does not say needs a higher one.
_USUAL = (0.01, 200.0)
_SLOWEST_GUESS = 0.1

#: A rate of fewer requests says little.
_FEW = 10

#: Rows that are looked at for fractions.
_LOOKED_AT = 2**16


def unit_of(times: NDArray[Any], unit: str, name: str, source: str, *, guessed: bool, named: bool = False) -> str:
    """Return the unit of times: s, ms, us or ns.

    Parameters
    ----------
    times
        float64, (N,): as they stand in the file.
    unit
        What the format says, or "s" where it says nothing (`guessed`).
    name, source
        Of the column and the file, for the question.
    named
        Whether the name of the column says the unit.

    Raises
    ------
    InputError
        Where two units remain; it names both, with the span and rate that each would give.
    """
    if times.size < 2:
        return unit
    low, high = float(times.min()), float(times.max())
    if high <= low:
        return unit
    rate = {one: (times.size - 1) / ((high - low) * SECONDS[one]) for one in UNITS}
    dates = [one for one in UNITS if EPOCH[0] <= low * SECONDS[one] and high * SECONDS[one] <= EPOCH[1]]
    usual = [one for one in UNITS if _USUAL[0] <= rate[one] <= _USUAL[1]]
    if dates and (dates[0] in usual or not usual):
        return dates[0]  # the four ranges do not meet
    looked_at = times[:_LOOKED_AT]
    fractions = np.count_nonzero(looked_at != np.floor(looked_at)) > looked_at.size / 2
    slowest = _SLOWEST_GUESS if guessed else _USUAL[0]
    many = times.size >= _FEW
    fast = rate[unit] > _USUAL[1] and (many or fractions)
    slow = rate[unit] < slowest and many
    odd = fractions and unit == "ms" and rate["s"] >= _SLOWEST_GUESS
    coarse = unit != "s" and np.count_nonzero(looked_at % 100) < looked_at.size / 2  # of a clock of whole seconds, say
    bare = many and not (named or fractions or coarse)
    others = [one for one in usual if not (fractions and one in ("us", "ns"))]
    others = [one for one in UNITS if one != unit and one in (*dates, *others)]
    if not others or not (fast or slow or odd or dates or bare):
        return unit
    readings = " or ".join(
        f"{UNITS[one][-1]} ({(high - low) * SECONDS[one]:,.4g} s, {rate[one]:,.4g} requests a second)"
        for one in (unit, *others)
    )
    raise InputError(f"{source}: {name} may be in {readings}; name the unit, --unit {' or '.join((unit, *others))}")


def in_seconds(times: NDArray[Any], unit: str, name: str, source: str) -> NDArray[np.float64]:
    """Return times in seconds; refuse a unit that puts them beyond any calendar."""
    if unit == "s":
        return times
    seconds: NDArray[np.float64] = times / round(1 / SECONDS[unit])
    if seconds.max(initial=0.0) > LARGEST_SECONDS:
        raise InputError(f"{source}: {name} up to {times.max():g} in {UNITS[unit][-1]} lies beyond any calendar")
    return seconds
