"""What all pictures share: size, colours, and a figure that belongs to no window."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from lbopt.runner.execute import noted_interrupts
from lbopt.statistics import MeanOverSeeds

#: Okabe and Ito's palette, told apart by colour-blind readers too; beyond eight lines the dash changes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", ":", "-.")
MARKS = "osD^v<>P*X"
#: For what is no result: zero lines, limits, what others printed.
GREY = "#57606a"


def new_figure(width: float = 8.0, height: float = 4.5) -> tuple[Figure, Axes]:
    """Return a figure with one set of axes, drawn without a display."""
    with rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
    axes.grid(visible=True, alpha=0.25)
    return figure, axes


def dress(axes: Axes) -> None:
    """Give axes a faint grid, and no frame at the top and at the right."""
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def panel_each(
    values: Sequence[Any], draw: Callable[[Axes, Any], None], label: str, columns: int, size: tuple[float, float]
) -> Figure:
    """Return a figure with a panel for each value, and one legend below.

    Parameters
    ----------
    label
        Of the vertical axes, which all panels share.
    """
    figure, first = new_figure(*size)
    grid = figure.add_gridspec(-(-len(values) // columns), columns)
    for place, value in enumerate(values):
        spec = grid[place // columns, place % columns]
        axes = first if place == 0 else figure.add_subplot(spec, sharey=first)
        axes.set_subplotspec(spec)
        draw(axes, value)
        if place % columns == 0:
            axes.set_ylabel(label)
    legend_of(figure, first, 4)
    return figure


def grid_of(
    columns: Sequence[Any],
    labels: Sequence[str],
    height: float,
    draw: Callable[[Axes, int, Any], None],
    *,
    legend: int,
    last: str | None = None,
    shares: Sequence[float] | None = None,
) -> Figure:
    """Return a figure with a column of panels for each value, and one legend below.

    Parameters
    ----------
    labels
        Of the vertical axes, a row each.
    draw
        Draws on a panel, from the number of its row and the value of its column.
    legend
        Most columns of the legend; 0 for none.
    last
        What stands in the labels that end the legend.
    shares
        Heights of the rows relative to each other; None makes them equal.
    """
    figure, panels = panels_of(len(labels), max(1, len(columns)), height, shares)
    for column, value in enumerate(columns):
        for row, panel in enumerate(panels):
            draw(panel[column], row, value)
    for panel, label in zip(panels, labels, strict=True):
        panel[0].set_ylabel(label)
    if legend:
        named = next((one for one in panels[0] if one.get_legend_handles_labels()[0]), panels[0][0])
        legend_of(figure, named, legend, last)
    return figure


def dressed(
    axes: Axes,
    *,
    title: str = "",
    level: float | None = None,
    ticks: tuple[Sequence[float], Sequence[str]] | None = None,
    **settings: Any,
) -> None:
    """Give axes a title at the left, a level line, ticks with names, and what `Axes.set` takes."""
    if level is not None:
        axes.axhline(level, color=GREY, linewidth=0.8)
    if ticks is not None:
        axes.set_xticks(*ticks)
    if title:
        axes.set_title(title, fontsize=10, loc="left")
    axes.set(**settings)


def legend_of(figure: Figure, axes: Axes, most_columns: int, last: str | None = None) -> None:
    """Put the legend of some axes below the whole figure; labels with `last` in them end it."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda at: last is not None and last in labels[at])
    handles, labels = [handles[at] for at in order], [labels[at] for at in order]
    columns = min(most_columns, len(labels))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def legend_below(axes: Axes, columns: int = 2, title: str | None = None) -> None:
    """Put the legend under the axes, where it leaves them the width of a narrow screen."""
    inches = ScaledTranslation(0, -0.6, axes.figure.dpi_scale_trans)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + inches,
        ncols=columns,
        frameon=False,
        fontsize=8,
        title=title,
        title_fontsize=8,
    )


def png_of(figure: Figure) -> bytes:
    """Return the figure as PNG, without the name of the program in it: equal data give equal bytes."""
    stream = io.BytesIO()
    with noted_interrupts(act=False):  # in the midst of a path, matplotlib makes of Ctrl-C a ValueError of its own
        figure.savefig(stream, format="png", dpi=130, metadata={"Software": None})
    return stream.getvalue()


def svg_of(figure: Figure, name: str) -> bytes:
    """Return the figure as SVG, without date and version in it; `name` is what its inner names are made from."""
    stream = io.BytesIO()
    with rc_context({"svg.hashsalt": name}), noted_interrupts(act=False):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def of_counts(axes: Axes) -> None:
    """Let the vertical axis begin at zero, and separate the thousands of its numbers as tables do."""
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.10g}")


def unit_of_axis(seconds: float) -> tuple[str, float]:
    """Return the unit of an axis of time that ends at so many seconds, and the seconds in it."""
    return ("s", 1.0) if seconds < 600 else ("min", 60.0) if seconds < 36_000 else ("h", 3600.0)


def line_style(index: int) -> dict[str, Any]:
    """Return colour and dash of line number `index`."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index // len(COLOURS) % len(DASHES)]}


def panels_of(
    rows: int, columns: int, height: float, shares: Sequence[float] | None = None
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with its panels, row by row.

    Parameters
    ----------
    shares
        Heights of the rows relative to each other; None makes them equal.
    """
    figure, first = new_figure(1.0 + 4.2 * columns, height)
    grid = figure.add_gridspec(rows, columns, height_ratios=shares)
    first.set_subplotspec(grid[0, 0])
    panels = [[first if r == c == 0 else figure.add_subplot(grid[r, c]) for c in range(columns)] for r in range(rows)]
    for axes in (one for row in panels for one in row):
        dress(axes)
    return figure, panels


def error_line(
    axes: Axes,
    values: Sequence[MeanOverSeeds | None],
    *,
    x: Sequence[float] | None = None,
    aside: float = 0.0,
    **style: Any,
) -> None:
    """Draw what is known of a line, with its intervals.

    Parameters
    ----------
    axes
        Where to draw.
    values
        Means with intervals; None leaves a place out.
    x
        Places; None counts from zero.
    """
    where = range(len(values)) if x is None else x
    known = [(place + aside, value) for place, value in zip(where, values, strict=True) if value is not None]
    if known:
        axes.errorbar(
            [place for place, _ in known],
            [value.mean for _, value in known],
            yerr=[half_interval(value) for _, value in known],
            **{"markersize": 4, "linewidth": 1.2, "capsize": 2, **style},
        )


def error_bars(
    axes: Axes, where: Sequence[float], values: Sequence[MeanOverSeeds | None], width: float, **style: Any
) -> None:
    """Draw what is known as bars, with intervals."""
    known = [(place, value) for place, value in zip(where, values, strict=True) if value is not None]
    if known:
        places, means, halves = zip(*((place, one.mean, half_interval(one)) for place, one in known), strict=True)
        axes.bar(places, means, width, yerr=halves, **{"ecolor": GREY, "alpha": 0.8, "capsize": 2, **style})


def half_interval(value: MeanOverSeeds) -> float:
    """Return half the interval; NaN, which is not drawn, where there is none."""
    return math.nan if value.high is None else value.high - value.mean


def marked_line(index: int) -> dict[str, Any]:
    """Return the style of line number `index` with its mark."""
    return {"marker": MARKS[index % len(MARKS)], "markersize": 4, **line_style(index)}
