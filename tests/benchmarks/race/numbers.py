"""How times and ratios of a race look: three digits, and "≥" where a run was not closed within the limit."""

from __future__ import annotations

import math

from lbopt.numbers import UNKNOWN
from tests.benchmarks.race.profile import Bracket

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def duration(seconds: float | None) -> str:
    """Return seconds in the unit that suits them: 0.375 ms, 12.3 s."""
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    factor, unit = next((entry for entry in _UNITS if seconds >= entry[0]), _UNITS[-1])
    return f"{_three_digits(seconds / factor)} {unit}"


def time_bracket(value: Bracket | None) -> str:
    """Return a time, or "≥ limit"."""
    if value is None:
        return UNKNOWN
    return duration(value.low) if value.known else f"≥ {duration(value.low)}"


def ratio_bracket(value: Bracket | None) -> str:
    """Return a ratio with a multiplication sign, or the side on which it is known to lie."""
    if value is None:
        return UNKNOWN
    low, high = f"{_three_digits(value.low)}×", f"{_three_digits(value.high)}×"
    if value.known:
        return low
    if math.isinf(value.high):
        return f"≥ {low}" if value.low > 0 else UNKNOWN
    return f"{low} to {high}" if value.low > 0 else f"≤ {high}"


def _three_digits(value: float) -> str:
    if not math.isfinite(value):
        return "∞"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}" if digits <= 6 else f"{value:.2e}"
