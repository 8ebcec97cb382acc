"""The tables of a calibration: laws with intervals, which of them the rows tell apart, one slope for all, held out.

What a fitted line says in the words of the tool: milliseconds that are fixed, nanoseconds per token.

A slope in the spread is not the slope in the heaviest load. For nearly symmetric loads max ≈ mean + spread / 2, so a
token more on the heaviest worker costs about twice what a token of spread does; and the intercept holds the cost of the
mean load, which no column of spreads can separate from what is fixed. An imbalance is the sum over G workers of what
they lack to the heaviest, max = mean + imbalance / G, so there the factor is G, without an approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.fit import Calibration, GroupCalibration, LawFit
from lbopt.hardware.fit.calibration import FEWEST_ROWS
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


_RULE = (
    "Told apart where flipping the signs of the paired differences of squared leave-one-out errors in all ways gives a "
    f"mean as far from zero in at most 5 % of the ways, which takes {FEWEST_ROWS} rows. Rows are taken as independent, "
    "and the law that leads was picked by looking: a yes is a little weaker than 5 % sounds, and a no mostly says that "
    "the rows are few."
)


def fit_tables(calibration: Calibration, residuals: bool = False) -> list[Table]:
    """Return what a terminal shows; with `residuals`, also a line per row and law."""
    tables = []
    for one in calibration.groups:
        tables.append(_law_table(calibration, one))
        if residuals:
            tables.append(_residual_table(calibration, one))
    tables.append(_comparison_table(calibration))
    meaning = meaning_table(calibration)
    if meaning is not None:
        tables.append(meaning)
    if calibration.pooled:
        tables.append(_pooled_table(calibration))
    if calibration.held_out:
        tables.append(_held_out_table(calibration))
    return tables


def verdict(group: GroupCalibration) -> str:
    """Return one sentence on which laws the rows of a group can and cannot tell apart."""
    best, rows = group.best, group.observed.y.size
    leads = f"Best on rows left out: {best.law.name}"
    if not group.comparisons:
        return f"{leads}, the only law fitted."
    if rows < FEWEST_ROWS:
        return f"{leads}; but no {rows} rows can tell laws apart by the rule, which needs {FEWEST_ROWS}."
    told = _listed([one.worse for one in group.comparisons if one.told_apart], "and")
    open_ = _listed([one.worse for one in group.comparisons if not one.told_apart])
    if not told:
        return f"{leads}; but these {rows} rows cannot tell it from {open_}."
    return f"{leads}; told from {told}" + (f", but {rows} rows cannot tell it from {open_}." if open_ else ".")


def _listed(names: Sequence[str], link: str = "or") -> str:
    return f" {link} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _law_table(calibration: Calibration, group: GroupCalibration) -> Table:
    rows = [line for fit in group.fits for line in _law_lines(fit)]
    response = calibration.rows.response
    against = ", ".join(dict.fromkeys(one.column for one in calibration.rows.regressors.values()))
    units = {"x": "x", "max_load": "max", "mean_load": "mean"}
    named = [f"{units[role]} in {one.unit}" for role, one in calibration.rows.regressors.items() if one.unit]
    caption = [verdict(group), *(note[0].upper() + note[1:] + "." for note in group.notes)]
    if response.unit or named:
        caption.append(f"y in {response.unit or response.column}{', ' if named else ''}{', '.join(named)}.")
    if any(fit.law.reciprocal for fit in group.fits):
        caption.append("R² of the reciprocal law is that of 1000 / y; its errors are in y.")
    return Table(
        f"{_name(group)}{response.column} against {against}, {group.observed.y.size} rows",
        " ".join(caption),
        ("law", "y =", "", "value ± s.e.", "95 % interval", "R²", "RMSE (n)", "RMSE (n−p)", "left out"),
        rows,
    )


def _law_lines(fit: LawFit) -> list[tuple[str, ...]]:
    lines = []
    rows, free = fit.residuals.size, fit.numbers.degrees
    squares = float(fit.residuals @ fit.residuals)
    whole = (
        UNKNOWN if math.isnan(fit.numbers.r_squared) or not fit.law.needs else f"{fit.numbers.r_squared:.3f}",
        short(math.sqrt(squares / rows)),
        short(math.sqrt(squares / free)),
        short(fit.left_out_error),
    )
    for index, letter in enumerate(fit.law.parameters):
        value, error = float(fit.numbers.estimates[index]), float(fit.numbers.errors[index])
        low, high = float(fit.numbers.low[index]), float(fit.numbers.high[index])
        ends = f"{digits(low, error)} … {digits(high, error)}"
        about = (letter, f"{digits(value, error)} ± {digits(error, error)}", ends)
        first = index == 0
        lines.append(
            (fit.law.name if first else "", fit.law.formula if first else "", *about, *(whole if first else [""] * 4))
        )
    return lines


def _residual_table(calibration: Calibration, group: GroupCalibration) -> Table:
    unit = calibration.rows.response.unit
    rows = [
        (
            label,
            f"{float(group.observed.y[i]):,.6g}",
            *(
                f"{short(float(fit.residuals[i]), sign=True)} ({short(float(fit.left_out[i]), sign=True)})"
                for fit in group.fits
            ),
        )
        for i, label in enumerate(group.observed.labels)
    ]
    return Table(
        f"{_name(group)}residuals{f', {unit}' if unit else ''}",
        "Observed less fitted; in brackets observed less predicted from the other rows.",
        ("row", "y", *(fit.law.name for fit in group.fits)),
        rows,
    )


def _comparison_table(calibration: Calibration) -> Table:
    rows = [
        (
            group.observed.group or "all rows",
            one.better,
            one.worse,
            short(one.difference),
            f"{short(one.low)} … {short(one.high)}",
            f"{one.p_value:.3f}",
            "yes" if one.told_apart else "no",
        )
        for group in calibration.groups
        for one in group.comparisons
    ]
    unit = calibration.rows.response.unit
    difference = f"worse by ({unit}²)" if unit else "worse by (squared)"
    return Table(
        "Which laws the rows tell apart",
        _RULE,
        ("group", "best", "against", difference, "95 % interval", "p of signs", "told apart"),
        rows,
    )


def _pooled_table(calibration: Calibration) -> Table:
    rows = [
        (
            one.feature,
            f"{digits(one.slope[0], one.slope[1])} ± {digits(one.slope[1], one.slope[1])}",
            short(one.numbers.rmse),
            f"{short(min(one.own_slopes))} … {short(max(one.own_slopes))}",
            short(one.own_slopes_rmse),
            short(one.f_statistic),
            UNKNOWN if math.isnan(one.p_value) else f"{one.p_value:.2g}",
        )
        for one in calibration.pooled
    ]
    unit = calibration.rows.response.unit or "unit of y"
    refuted = [one.feature for one in calibration.pooled if one.p_value < 0.05]
    kept = [one.feature for one in calibration.pooled if not one.p_value < 0.05]
    words = f"One slope for all groups is refuted (5 %) on {_listed(refuted, 'and')}. " if refuted else ""
    words += f"One slope for all groups is not refuted on {_listed(kept, 'and')}. " if kept else ""
    return Table(
        "One slope for all groups, each with its own intercept",
        f"{words}F test of nested laws, which takes the same scatter in all groups. RMSE with divisor n, {unit}.",
        ("slope on", "common slope ± s.e.", "RMSE", "own slopes", "RMSE with own slopes", "F", "p"),
        rows,
    )


def _held_out_table(calibration: Calibration) -> Table:
    rows = [
        (
            one.group,
            one.feature,
            short(one.slope),
            short(one.own_slope),
            f"{short(one.level)} ({short(one.level_bias, sign=True)})",
            one.anchor,
            f"{short(one.anchored)} ({short(one.no_change)})",
            f"{short(one.anchored_all)} ({short(one.no_change_all)})",
        )
        for one in calibration.held_out
    ]
    return Table(
        "Groups predicted from the other groups",
        f"{_useful(calibration)} Root mean square errors, {calibration.rows.response.unit or 'unit of y'}. In level: "
        "slope and mean intercept of the others (bias in brackets). In differences: slope of the others from one "
        "measured row, the one of largest x, or any row; in brackets the error of predicting no change.",
        ("group", "slope on", "others' slope", "own", "level (bias)", "anchor", "from it", "from any row"),
        rows,
    )


def _useful(calibration: Calibration) -> str:
    """Return one sentence on which slopes beat the prediction of no change in every group held out."""
    features = list(dict.fromkeys(one.feature for one in calibration.held_out))
    beaten = {one.feature for one in calibration.held_out if one.anchored >= one.no_change}
    good = [name for name in features if name not in beaten]
    groups = len({one.group for one in calibration.held_out})
    held = "the group held out" if groups == 1 else f"all {groups} groups held out"
    if not good:
        return f"From the anchor, no slope of the others beats predicting no change in {held}."
    return f"From the anchor, predicting no change is beaten in {held} only by a slope on {_listed(good, 'and')}."


def _name(group: GroupCalibration) -> str:
    return f"{group.observed.group}: " if group.observed.group else ""


def short(value: float, sign: bool = False) -> str:
    """Return a number with three digits, a true minus sign, and a plus sign if asked for."""
    if math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    places = 2 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:+,.{max(0, places)}f}" if 1e-6 < abs(value) < 1e7 or not value else f"{value:+.2e}"
    return text.removeprefix("+").replace("-", "−") if not sign else text.replace("-", "−")


def digits(value: float, error: float) -> str:
    """Return a number with as many digits as an error of two digits supports."""
    if not error > 0 or not math.isfinite(error):
        return f"{value:.6g}".replace("-", "−")
    places = 1 - math.floor(math.log10(error))
    if places > 9 or error > 1e7:
        return f"{value:.4g}".replace("-", "−")
    return f"{value:,.{max(0, places)}f}".replace("-", "−")
