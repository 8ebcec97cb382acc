"""The picture of a calibration: a panel per group with its rows and the laws through them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lbopt.hardware.fit import Calibration, GroupCalibration, LawFit, Variable
from lbopt.hardware.fit.law import Role
from lbopt.report.figures import COLOURS, new_figure

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
