"""What a fitted line says in the words of the tool: milliseconds that are fixed, nanoseconds per token.

A slope in the spread is not the slope in the heaviest load. For nearly symmetric loads max ≈ mean + spread / 2, so a
token more on the heaviest worker costs about twice what a token of spread does; and the intercept holds the cost of the
mean load, which no column of spreads can separate from what is fixed. An imbalance is the sum over G workers of what
they lack to the heaviest, max = mean + imbalance / G, so there the factor is G, without an approximation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.fit import Calibration, GroupCalibration, LawFit
from lbopt.numbers import UNKNOWN
from lbopt.table import Table

_NS_PER_TOKEN = 1000.0  # of ms per ktoken
_WORDS = {
    "spread": "max − min",
    "imbalance": "the imbalance",
    "max_load": "the heaviest load",
    "mean_load": "the mean load",
}


def meaning_table(calibration: Calibration) -> Table | None:
    """Return the table, or None where the response is not a time, or no law is a line in tokens."""
    if calibration.rows.response.kind != "time":
        return None
    rows = [line for group in calibration.groups for fit in group.fits if (line := _line(calibration, group, fit))]
    if not rows:
        return None
    caption = (
        "Slopes with 95 % intervals. As max ≈ mean + spread / 2, a slope in the heaviest load is about twice that in "
        "the spread (G times that in the imbalance), and an intercept against these contains the cost of the mean load."
    )
    if "p95" in calibration.rows.response.stem or "p99" in calibration.rows.response.stem:
        caption += " A percentile over requests is not the mean step time: use ratios, not levels."
    return Table(
        "In words of the tool",
        caption,
        ("group", "law", "fixed (ms)", "ns per token of", "", "ns per token of the heaviest load", "step time"),
        rows,
    )


def _line(calibration: Calibration, group: GroupCalibration, fit: LawFit) -> tuple[str, ...] | None:
    if fit.law.name not in ("linear", "heaviest", "heaviest and mean"):
        return None
    roles = calibration.rows.regressors
    first = roles[fit.law.needs[0]]
    if first.kind != "tokens":
        return None
    factor: float | None = 1.0
    if fit.law.name == "linear":
        workers = group.observed.workers
        factor = {"spread": 2.0, "imbalance": None if workers is None else float(workers), "max_load": 1.0}.get(
            first.stem
        )
    numbers = fit.numbers
    slopes = [
        _NS_PER_TOKEN * np.array([numbers.estimates[i], numbers.low[i], numbers.high[i]])
        for i in range(1, len(fit.law.parameters))
    ]
    heaviest = UNKNOWN
    if factor is not None:
        about = "about " if first.stem == "spread" else ""
        heaviest = about + _interval(factor * slopes[0])
    return (
        group.observed.group or "all rows",
        fit.law.name,
        f"{float(numbers.estimates[0]):,.4g}".replace("-", "−"),
        "; ".join(_WORDS.get(roles[role].stem, roles[role].column) for role in fit.law.needs),
        "; ".join(_interval(one) for one in slopes),
        heaviest,
        _spec(fit),
    )


def _interval(ends: NDArray[np.float64]) -> str:
    """Return estimate, low and high as text."""
    return f"{ends[0]:,.3g} ({ends[1]:,.3g} … {ends[2]:,.3g})".replace("-", "−")


def _spec(fit: LawFit) -> str:
    """Return the law as users name it, where its constants are known and none is negative."""
    values = [float(value) for value in fit.numbers.estimates]
    if "x" in fit.law.needs or min(values) < 0:
        return UNKNOWN
    fixed, slope = values[0] * 1e-3, values[1] * 1e-6
    if fit.law.name == "heaviest":
        return f"affine:fixed={fixed:.6g},per_token={slope:.6g}"
    return f"mean-term:per_token={slope:.6g},per_mean_token={values[2] * 1e-6:.6g},fixed={fixed:.6g}"
