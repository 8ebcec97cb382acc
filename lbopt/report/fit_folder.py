"""The output folder of a calibration: fits, residuals, comparisons, pooled and held-out slopes, a picture, run.json."""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lbopt.hardware.fit import Calibration, GroupCalibration, LawFit, Variable
from lbopt.hardware.fit.law import Role
from lbopt.report.contents import Contents, write_folder
from lbopt.report.figures import COLOURS, new_figure
from lbopt.report.fit_tables import verdict

_MOST_COLUMNS = 3

#: More panels than these are not readable; the CSV files have all groups.
MOST_PANELS = 12
_LAW_COLOURS = {
    "linear": COLOURS[0],
    "square root": COLOURS[2],
    "logarithmic": COLOURS[1],
    "reciprocal": COLOURS[3],
    "heaviest": COLOURS[0],
}

_OBSERVED = "observed"
_DOT: dict[str, Any] = {"color": "black", "marker": "o", "linestyle": "", "markersize": 4.5}


def law_figure(calibration: Calibration) -> Figure:
    """Return the rows against x, or against the heaviest load where there is no x, with the laws of that column."""
    groups = calibration.groups[:MOST_PANELS]
    columns = 2 if len(groups) == 4 else min(_MOST_COLUMNS, len(groups))
    rows = -(-len(groups) // columns)
    figure, first = new_figure(1.0 + 3.5 * columns, 1.0 + 2.8 * rows)
    grid = figure.add_gridspec(rows, columns)
    shown: dict[str, None] = {}
    for place, group in enumerate(groups):
        axes = first if place == 0 else figure.add_subplot(grid[place // columns, place % columns])
        axes.set_subplotspec(grid[place // columns, place % columns])
        _panel(axes, calibration, group)
        if place % columns == 0:
            axes.set_ylabel(_axis(calibration.rows.response))
        if place + columns >= len(groups):
            axes.set_xlabel(_axis(calibration.rows.regressors[_role(calibration)]))
        shown |= dict.fromkeys(axes.get_legend_handles_labels()[1])
    handles = [Line2D([], [], **(_DOT if name == _OBSERVED else {"color": _colour(name)})) for name in shown]
    figure.legend(
        handles,
        list(shown),
        loc="outside lower center",
        ncols=min(5, len(shown)),
        frameon=False,
        fontsize=9,
        title="thick: the law that predicts rows left out best; ring: the row that it misses most",
        title_fontsize=8,
    )
    return figure


def _panel(axes: Axes, calibration: Calibration, group: GroupCalibration) -> None:
    role = _role(calibration)
    x = group.observed.columns[role]
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    reach = float(np.ptp(x))
    grid = np.linspace(max(float(x.min()) - 0.02 * reach, 1e-3 * float(x.max())), float(x.max()) + 0.02 * reach, 400)
    drawn = [fit for fit in group.fits if fit.law.needs == (role,)]
    for fit in drawn:
        axes.plot(
            grid,
            fit.predict({role: grid}),
            color=_colour(fit.law.name),
            linewidth=2.4 if fit is group.best else 1.0,
            label=fit.law.name,
        )
    axes.plot(x, group.observed.y, **_DOT, label=_OBSERVED)
    odd = _odd_one(group, drawn)
    if odd is not None:
        axes.plot(x[odd], group.observed.y[odd], "o", color="#57606a", markersize=10, fillstyle="none")
    axes.set_title(_title(group, odd), fontsize=10, loc="left")


def _odd_one(group: GroupCalibration, drawn: list[LawFit]) -> int | None:
    """Return the row that the best drawn law misses most, as that is the one a reader asks about."""
    if not drawn:
        return None
    return int(np.argmax(np.abs(min(drawn, key=lambda fit: fit.left_out_error).residuals)))


def _title(group: GroupCalibration, odd: int | None) -> str:
    name = f"{group.observed.group or 'all rows'}: {group.observed.y.size} rows"
    return name if odd is None else f"{name}, ring: {group.observed.labels[odd]}"


def _colour(law: str) -> str:
    return _LAW_COLOURS.get(law, COLOURS[7])


def _role(calibration: Calibration) -> Role:
    return "x" if "x" in calibration.rows.regressors else "max_load"


def _axis(variable: Variable) -> str:
    if not variable.unit:
        return variable.column
    words = re.sub(r"\b(tpot|p\d+)\b", lambda found: found[0].upper(), variable.stem.replace("_", " "))
    return f"{words} ({variable.unit})"


FORMAT = "lbopt-fit"
FORMAT_VERSION = 1


def write_fit_folder(calibration: Calibration, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""
    account = {
        "source": calibration.rows.source,
        "response": _column(calibration.rows.response),
        "regressors": {role: _column(one) for role, one in calibration.rows.regressors.items()},
        "verdicts": {one.observed.group: verdict(one) for one in calibration.groups},
        "notes": {one.observed.group: list(one.notes) for one in calibration.groups},
    }
    write_folder(folder, FORMAT, FORMAT_VERSION, command, lambda _made: fit_contents(calibration), account)


def fit_contents(calibration: Calibration) -> Contents:
    """Return the tables of fits, residuals and comparisons, pooled and held-out slopes, and the picture."""
    return Contents(
        tables={
            "fits": fits_csv(calibration),
            "residuals": residuals_csv(calibration),
            "comparisons": comparisons_csv(calibration),
            "pooled": pooled_csv(calibration) if calibration.pooled else None,
            "held_out": [asdict(one) for one in calibration.held_out] or None,
        },
        figures={"laws": law_figure(calibration)},
    )


def _column(one: Variable) -> dict[str, Any]:
    """Return the column and the unit in which the files have it."""
    return asdict(one) | {"unit": one.unit}


def fits_csv(calibration: Calibration) -> list[dict[str, Any]]:
    """Return a row per group, law and parameter; errors of the whole fit are in the unit of the response."""
    rows = []
    for group in calibration.groups:
        for fit in group.fits:
            squares = float(fit.residuals @ fit.residuals)
            for index, letter in enumerate(fit.law.parameters):
                rows.append(
                    {
                        "group": group.observed.group,
                        "law": fit.law.name,
                        "formula": fit.law.formula,
                        "parameter": letter,
                        "estimate": float(fit.numbers.estimates[index]),
                        "standard_error": float(fit.numbers.errors[index]),
                        "low": float(fit.numbers.low[index]),
                        "high": float(fit.numbers.high[index]),
                        "rows": fit.residuals.size,
                        "r_squared": fit.numbers.r_squared,
                        "rmse": math.sqrt(squares / fit.residuals.size),
                        "rmse_unbiased": math.sqrt(squares / fit.numbers.degrees),
                        "left_out_error": fit.left_out_error,
                    }
                )
    return rows


def residuals_csv(calibration: Calibration) -> list[dict[str, Any]]:
    """Return a row per group, row and law."""
    return [
        {
            "group": group.observed.group,
            "row": label,
            "law": fit.law.name,
            "observed": float(group.observed.y[i]),
            "fitted": float(group.observed.y[i] - fit.residuals[i]),
            "residual": float(fit.residuals[i]),
            "left_out_error": float(fit.left_out[i]),
            "leverage": float(fit.numbers.leverages[i]),
        }
        for group in calibration.groups
        for i, label in enumerate(group.observed.labels)
        for fit in group.fits
    ]


def comparisons_csv(calibration: Calibration) -> list[dict[str, Any]]:
    """Return a row per group and law that is not the best."""
    return [{"group": group.observed.group, **asdict(one)} for group in calibration.groups for one in group.comparisons]


def pooled_csv(calibration: Calibration) -> list[dict[str, Any]]:
    """Return a row per feature and parameter: an intercept a group, and the common slope."""
    return [
        {
            "feature": one.feature,
            "parameter": name,
            "estimate": float(one.numbers.estimates[index]),
            "standard_error": float(one.numbers.errors[index]),
            "own_slope": own,
            "rmse": one.numbers.rmse,
            "rmse_own_slopes": one.own_slopes_rmse,
            "f_statistic": one.f_statistic,
            "p_value": one.p_value,
        }
        for one in calibration.pooled
        for index, (name, own) in enumerate(
            [
                *((f"intercept {group}", own) for group, own in zip(one.groups, one.own_slopes, strict=True)),
                ("slope", None),
            ]
        )
    ]
