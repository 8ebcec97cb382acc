"""The output folder of a measurement: card.toml, samples.csv, power.csv, forecast.csv, the picture, run.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lbopt.hardware.measure import AttentionTimes, Measurement
from lbopt.hardware.measure.card import Compared
from lbopt.report.contents import Contents, write_folder
from lbopt.report.figures import COLOURS, new_figure
from lbopt.report.measure_tables import forecast_csv, measure_csv, power_csv

_MARKS = "osD^v<>P*X"


def measure_figure(found: Measurement) -> Figure:
    """Return a row per attention: left its grid with the fitted law, right the barrier where it was measured."""
    shown = [one for one in found.attention if one.law is not None]
    columns = 2 if any(one.steps for one in shown) else 1
    figure, first = new_figure(0.8 + 4.6 * columns, 0.6 + 3.4 * max(1, len(shown)))
    grid = figure.add_gridspec(max(1, len(shown)), columns)
    first.remove()
    for row, one in enumerate(shown):
        _times(figure.add_subplot(grid[row, 0]), one)
        if one.steps:
            _barrier(figure.add_subplot(grid[row, 1]), one)
    return figure


def _times(axes: Axes, one: AttentionTimes) -> None:
    """Draw medians with intervals and the law, a colour per batch size."""
    _dress(axes)
    for index, batch in enumerate(sorted({point.batch for point in one.points})):
        colour = COLOURS[index % len(COLOURS)]
        places = [
            (point.tokens, time) for point, time in zip(one.points, one.medians, strict=True) if point.batch == batch
        ]
        tokens = np.array([place for place, _ in places])
        middle = np.array([1e3 * time.value for _, time in places])
        low, high = (np.array([1e3 * getattr(time, end) for _, time in places]) for end in ("low", "high"))
        axes.errorbar(
            tokens,
            middle,
            yerr=[middle - low, high - middle],
            color=colour,
            marker=_MARKS[index % len(_MARKS)],
            markersize=4,
            linestyle="",
            label=f"batch {batch}",
        )
        if one.law is not None:
            line = np.geomspace(tokens.min(), tokens.max(), 200)
            law = np.array([1e3 * one.law.seconds(batch, float(place)) for place in line])
            axes.plot(line[law > 0], law[law > 0], color=colour, linewidth=1)
    axes.set_xlabel("resident tokens of the call")
    axes.set_ylabel("time of one layer's attention (ms)")
    verdict = one.linearity.verdict if one.linearity else "no verdict"
    axes.set_title(f"{one.shape.name}: {verdict}", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9)


def _barrier(axes: Axes, one: AttentionTimes) -> None:
    """Draw predicted against measured steps: by the heaviest load and by the mean."""
    measured = [1e3 * step.measured.value for step in one.steps]
    by_max = [1e3 * step.by_max for step in one.steps]
    end = 1.15 * max(measured + by_max)
    axes.plot([0, end], [0, end], color="#57606a", linewidth=1, label="as measured")
    axes.plot(measured, by_max, "o", color=COLOURS[0], label="by max L")
    axes.plot(
        measured,
        [1e3 * step.by_other for step in one.steps],
        "s",
        color=COLOURS[1],
        fillstyle="none",
        label="by mean L",
    )
    for index, step in enumerate(one.steps):
        axes.annotate(
            step.vector.name,
            (measured[index], by_max[index]),
            xytext=(-7, 1),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
    axes.set_xlim(0, end)
    axes.set_ylim(0, end)
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("measured step (ms)")
    axes.set_ylabel("predicted step (ms)")
    axes.set_title(f"barrier of {len(one.vectors[0].loads)} workers", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9, loc="upper left")


def _dress(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)


FORMAT = "lbopt-measure"
FORMAT_VERSION = 1


def write_measure_folder(
    found: Measurement, card: str | None, folder: Path, command: str, compared: Sequence[Compared] = ()
) -> None:
    """Write the folder whole or not at all; `card` is the card's text, None where none could be made.

    Parameters
    ----------
    card
        Text of the card; None where none could be made.
    """
    fitted = any(one.law is not None for one in found.attention)
    contents = Contents(
        tables={
            "samples": measure_csv(found),
            **({} if found.power is None else {"power": power_csv(found.power)}),
            **({"forecast": forecast_csv(compared)} if compared else {}),
        },
        figures={"measure": measure_figure(found) if fitted else None},
        others={} if card is None else {"card.toml": card},
    )
    account = {
        "machine": found.machine,
        "date": found.date,
        "configuration": found.config.to_dict(),
        "interrupted": found.interrupted,
        "notes": found.notes,
        "seconds": found.seconds,
    }
    write_folder(folder, FORMAT, FORMAT_VERSION, command, lambda _made: contents, account)
