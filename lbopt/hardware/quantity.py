"""A quantity: a constant with its unit, its source, and the two ends between which it is believed to lie.

Where sources differ by a factor of two, both are kept as the ends. `basis` says how the value is known: *measured* on
the machine, *published* in a source that can be cited, *derived* from other constants by a formula that the source
names, *assumed* where no source says.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import listed, shown

Basis = Literal["measured", "published", "derived", "assumed"]
BASES: tuple[Basis, ...] = ("measured", "published", "derived", "assumed")
_FIELDS = {"value", "low", "high", "unit", "source", "basis"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A constant of hardware or of a model; `low` <= `value` <= `high`, none of them negative."""

    value: float
    low: float
    high: float
    unit: str
    source: str
    basis: Basis

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise InputError(f"{name} is {number!r}; expected a number of {self.unit}")
            if isinstance(number, int) and abs(number) > sys.float_info.max:
                raise InputError(f"{name} has {len(str(number))} digits; expected a number of {self.unit} below 1e308")
            if not math.isfinite(number) or number < 0:
                raise InputError(f"{name} is {number:g} {self.unit}; expected a finite number of zero or more")
        if not self.low <= self.value <= self.high:
            raise InputError(
                f"value {self.value:g} {self.unit} does not lie between low {self.low:g} and high {self.high:g}"
            )
        for name in ("unit", "source"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise InputError(f"{name} is missing; every constant states its {name}")
        if self.basis not in BASES:
            raise InputError(f"basis '{self.basis}' is unknown; expected {', '.join(BASES)}")

    @classmethod
    def from_dict(cls, what: str, data: Any, unit: str) -> Quantity:
        """Read a table of a card; `low` and `high` may be left out together where the value has no uncertainty.

        Parameters
        ----------
        what
            Named in errors, such as "device card 'h800': memory_bandwidth".
        data
            The table as read from TOML.
        unit
            The unit that the card's field has; another one is refused.
        """
        if not isinstance(data, dict):
            raise InputError(f"{what} is {shown(data)}; expected a table with value, unit, source and basis")
        wrong = sorted(set(data) - _FIELDS)
        missing = sorted({"value", "unit", "source", "basis"} - set(data))
        if wrong or missing or ("low" in data) != ("high" in data):
            about = f"unknown {listed(wrong)}" if wrong else f"missing {', '.join(missing) or 'one of low and high'}"
            raise InputError(f"{what} is not a quantity: {about}")
        if data["unit"] != unit:
            raise InputError(f"{what} has unit {shown(data['unit'])}; expected '{unit}'")
        try:
            return cls(**({"low": data["value"], "high": data["value"]} | data))
        except InputError as error:
            raise InputError(f"{what}: {error}") from None

    def quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers between the ends at these levels, float64 in [0, 1]; most of them lie near the value.

        The value is the median: half of the levels lie below it and half above, each half triangular in the logarithm
        with its peak at the value (in the number itself where an end is zero). So what the values give is the median
        of what the draws give, also where a value stands at one of its ends. Uniform levels give draws; equal levels
        for two quantities let both lean the same way.
        """
        low, value, high = float(self.low), float(self.value), float(self.high)
        if low == high:
            return np.full(levels.shape, value)
        logarithmic = low > 0
        if logarithmic:
            low, value, high = math.log(low), math.log(value), math.log(high)
        below = low + (value - low) * np.sqrt(2 * np.minimum(levels, 0.5))
        above = high - (high - value) * np.sqrt(2 * (1 - np.maximum(levels, 0.5)))
        found: NDArray[np.float64] = np.where(levels < 0.5, below, above)
        return np.clip(np.exp(found), self.low, self.high) if logarithmic else found

    def to_dict(self) -> dict[str, Any]:
        """Return the table that `from_dict` reads."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "source": self.source,
            "basis": self.basis,
        }


_KINDS: dict[type, str] = {str: "text", dict: "a table"}


def check_entries(what: str, data: Mapping[str, Any], needed: Mapping[str, type], more: Iterable[str] = ()) -> None:
    """Refuse a table that lacks an entry, has one of another kind, or one that is not known."""
    for name, kind in needed.items():
        if not isinstance(data.get(name), kind) or not data[name]:
            raise InputError(f"{what} has no {name}, or not as {_KINDS[kind]}")
    check_known(what, "entry", data, {*needed, *more})


def check_known(what: str, noun: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not known."""
    if unknown := sorted(set(names) - set(known)):
        raise InputError(f"{what} has an unknown {noun} '{unknown[0]}'; known are {', '.join(sorted(known))}")


def read_quantities(what: str, data: Mapping[str, Any], units: Mapping[str, str]) -> dict[str, Quantity]:
    """Return the quantities of a table by their names, each in its unit."""
    return {name: Quantity.from_dict(f"{what}: {name}", value, units[name]) for name, value in data.items()}
