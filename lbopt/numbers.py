"""How numbers look to a person. Files keep full precision; this is for tables and pages."""

from __future__ import annotations

import math
from collections.abc import Callable

from lbopt.statistics import MeanOverSeeds

Format = Callable[[float | None], str]

#: Shown where a number is not known.
UNKNOWN = "–"


def fixed(digits: int, factor: float = 1.0, unit: str = "") -> Format:
    """Return a format with so many digits behind the point, thousands separated and a true minus sign."""

    def form(value: float | None) -> str:
        if value is None or math.isnan(value):
            return UNKNOWN
        shown = round(factor * value, digits) + 0.0  # no negative zero
        return f"{shown:,.{digits}f}{unit}".replace("-", "−")

    return form


def three(value: float | None) -> str:
    """Show three digits that count, thousands separated: what a figure with a wide interval deserves."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    return fixed(max(0, digits))(round(value, digits))


tokens = fixed(0)
milliseconds = fixed(2, 1e3)
microseconds = fixed(1)
kilojoules = fixed(1, 1e-3)
steps = fixed(1)
whole = fixed(0)
share = fixed(2, 100, " %")
#: For differences of shares.
points = fixed(2, 100, " pp")


def with_interval(value: MeanOverSeeds | None, form: Format, *, signed: bool = False) -> str:
    """Return a mean with half the width of its interval, e.g. "12,345 ± 67"; a dash where nothing is known."""
    if value is None:
        return UNKNOWN
    text = form(value.mean)
    if signed and value.mean > 0 and text != form(0.0):
        text = "+" + text
    if value.low is None or value.high is None:
        return text
    return f"{text} ± {form((value.high - value.low) / 2)}"
