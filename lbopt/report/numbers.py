"""How numbers look to a person. Files keep full precision; this is for tables and pages."""

from __future__ import annotations

import math
from collections.abc import Callable

from lbopt.studies.intervals import MeanOverSeeds

Format = Callable[[float], str]


def _known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def tokens(value: float | None) -> str:
    """Whole tokens with thousands separated."""
    return f"{value:,.0f}" if _known(value) else "–"


def share(value: float | None) -> str:
    """A share as a percentage; small ones keep two digits."""
    if not _known(value):
        return "–"
    assert value is not None
    percent = 100 * value if abs(value) > 1e-9 else 0.0  # the rest is rounding
    return f"{percent:.1f} %" if abs(percent) >= 1 or percent == 0 else f"{percent:.2g} %"


def milliseconds(value: float | None) -> str:
    """Seconds shown as milliseconds."""
    return f"{1e3 * value:,.2f}" if value is not None and _known(value) else "–"


def microseconds(value: float | None) -> str:
    """Microseconds, whole from ten on."""
    if value is None or not _known(value):
        return "–"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def plain(value: float | None) -> str:
    """One digit after the point, none for whole numbers."""
    if value is None or not _known(value):
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def kilojoules(value: float | None) -> str:
    """Joules shown as kilojoules."""
    return f"{value / 1e3:,.1f}" if value is not None and _known(value) else "–"


def with_interval(value: MeanOverSeeds, form: Format, *, signed: bool = False) -> str:
    """Return a mean with half the width of its interval, e.g. "12,345 ± 67"."""
    text = form(value.mean)
    if signed and value.mean > 0:
        text = "+" + text
    if value.low is None or value.high is None:
        return text
    return f"{text} ± {form((value.high - value.low) / 2)}"
