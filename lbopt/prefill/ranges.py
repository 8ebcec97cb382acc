"""What a number of a setting can be, said at its field by ``Annotated``, and the refusal of what is outside."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from lbopt.exceptions import InputError
from lbopt.spec import unknown


@dataclass(frozen=True, slots=True)
class Range:
    """Metadata of a field; None, where the field can be that, is in every range.

    Parameters
    ----------
    expected
        What a refusal says was expected.
    low, high
        Least and largest value; without a largest one the value has to be finite.
    above, below
        Whether the least, the largest value is excluded itself.
    unit
        Said after the value.
    """

    expected: str
    low: float = 0
    high: float = math.inf
    above: bool = False
    below: bool = False
    unit: str = ""

    def holds(self, value: Any) -> bool:
        """Whether a value is in range; NaN is in none."""
        low = value > self.low if self.above else value >= self.low
        return bool(low and (value < self.high if self.below or self.high == math.inf else value <= self.high))


SECONDS = Range("0 or more", unit=" s")
PROBABILITY = Range("a probability, 0 to 1", high=1)
TOKENS = Range("at least 1 token, or None for no limit", low=1, high=2**50, below=True)
REQUESTS = Range("at least 1 request, or None for no limit", low=1, high=2**50, below=True)


@cache
def _ranges(kind: type[Any]) -> dict[str, Range]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: one for name, hint in hints.items() for one in getattr(hint, "__metadata__", ())}


def refuse_outside(record: Any, what: str = "") -> None:
    """Raise InputError for the first field of a record that is out of its range; `what` is said before its name."""
    for name, allowed in _ranges(type(record)).items():  # type: ignore[arg-type]  # a class is hashable
        value = getattr(record, name)
        if value is not None and not allowed.holds(value):
            raise InputError(f"{what}{name} is {value}{allowed.unit}; expected {allowed.expected}")


def refuse_others(**named: tuple[Any, Iterable[str]]) -> None:
    """Raise InputError for the first name that is not among those that there are."""
    for what, (name, known) in named.items():
        if name not in known:
            raise unknown(what, name, known)
