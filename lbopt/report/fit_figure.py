"""The picture of a calibration: a panel per group with its rows and the laws through them."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.hardware.fit import Calibration, GroupCalibration, LawFit, Variable
from lbopt.hardware.fit.law import Role
from lbopt.report.figures import COLOURS, new_figure

_MOST_COLUMNS = 3

#: More panels than these are not read by anybody; the CSV files have all groups.
MOST_PANELS = 12
_LAW_COLOURS = {
    "linear": COLOURS[0],
    "square root": COLOURS[2],
    "logarithmic": COLOURS[1],
    "reciprocal": COLOURS[3],
    "heaviest": COLOURS[0],
}


def law_figure(calibration: Calibration) -> Figure:
    """Return the rows against x, or against the heaviest load where there is no x, with the laws of that column."""
    groups = calibration.groups[:MOST_PANELS]
    columns = 2 if len(groups) == 4 else min(_MOST_COLUMNS, len(groups))
    rows = -(-len(groups) // columns)
    figure, first = new_figure(1.0 + 3.5 * columns, 1.0 + 2.8 * rows)
    grid = figure.add_gridspec(rows, columns)
    shown: dict[str, Artist] = {}
    for place, group in enumerate(groups):
        axes = first if place == 0 else figure.add_subplot(grid[place // columns, place % columns])
        axes.set_subplotspec(grid[place // columns, place % columns])
        _panel(axes, calibration, group)
        if place % columns == 0:
            axes.set_ylabel(_axis(calibration.rows.response))
        if place + columns >= len(groups):
            axes.set_xlabel(_axis(calibration.rows.regressors[_role(calibration)]))
        handles, labels = axes.get_legend_handles_labels()
        shown |= dict(zip(labels, handles, strict=True))
    figure.legend(
        list(shown.values()),
        list(shown),
        loc="outside lower center",
        ncols=min(5, len(shown)),
        frameon=False,
        fontsize=9,
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
        best = fit is group.best
        axes.plot(
            grid,
            fit.predict({role: grid}),
            color=_LAW_COLOURS.get(fit.law.name, COLOURS[7]),
            linewidth=2.0 if best else 1.1,
            linestyle="-" if best else "--",
            label=fit.law.name,
        )
    axes.plot(x, group.observed.y, "o", color="black", markersize=4.5, label="observed")
    _name_extremes(axes, group, drawn)
    axes.set_title(_title(group), fontsize=10, loc="left")


def _name_extremes(axes: Axes, group: GroupCalibration, drawn: list[LawFit]) -> None:
    """Name the row that the best drawn law misses most, as that is the one a reader asks about."""
    if not drawn or all(label.startswith("line ") for label in group.observed.labels):
        return
    best = min(drawn, key=lambda fit: fit.left_out_error)
    worst = int(np.argmax(np.abs(best.residuals)))
    x = group.observed.columns[best.law.needs[0]]
    left = x[worst] > (x.min() + x.max()) / 2
    axes.annotate(
        group.observed.labels[worst],
        (float(x[worst]), float(group.observed.y[worst])),
        xytext=(-6 if left else 6, -11),
        textcoords="offset points",
        ha="right" if left else "left",
        fontsize=8,
        color="#57606a",
    )


def _title(group: GroupCalibration) -> str:
    name = group.observed.group or "all rows"
    return f"{name}: {group.observed.y.size} rows, best left out: {group.best.law.name}"


def _role(calibration: Calibration) -> Role:
    return "x" if "x" in calibration.rows.regressors else "max_load"


def _axis(variable: Variable) -> str:
    words = variable.stem.replace("_", " ") if variable.unit else variable.column
    return f"{words} ({variable.unit})" if variable.unit else words
