"""How long a prefill pass takes, after Table 1 of SBS (arXiv 2512.16134)."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from lbopt.exceptions import InputError

#: Shorter passes would vanish in the rounding of the clock of a long run.
SHORTEST_PASS = 1e-6


@dataclass(frozen=True, slots=True)
class PassTime:
    """base + per_token * fullest unit + per_longest * longest chunk of a request + per_mean * mean unit, in tokens.

    The default is the line through the published utilisations and rates (Table 1), 94.3 ms and 0.0801 ms a token of
    a unit, within 1.7 ms. What was published are cycles, so that passes may be shorter. per_token = 0 is the
    batch-insensitive pass of the waiting law.

    Parameters
    ----------
    base
        s, at least a microsecond.
    per_token, per_longest, per_mean
        s per token, >= 0. What experts compute is shared by all units, if routing is even, and goes by the mean; the
        source has no such term.
    """

    base: float = 0.0943
    per_token: float = 80.1e-6
    per_longest: float = 0.0
    per_mean: float = 0.0

    def __post_init__(self) -> None:
        for name in ("base", "per_token", "per_longest", "per_mean"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"pass time: {name} is {value} s; expected 0 or more, as no pass takes negative time")
        if self.base < SHORTEST_PASS:
            raise InputError(f"pass time: base is {self.base} s; expected at least {SHORTEST_PASS} s")

    @classmethod
    def constant(cls, seconds: float) -> PassTime:
        """Return the pass that takes so long whatever it holds."""
        return cls(seconds, 0.0)

    def seconds(self, fullest: int, longest: int = 0, mean: float = 0.0) -> float:
        """Return the time of a pass of so many tokens of its fullest unit, of a request at most, and of a mean unit."""
        return self.base + self.per_token * fullest + self.per_longest * longest + self.per_mean * mean

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
