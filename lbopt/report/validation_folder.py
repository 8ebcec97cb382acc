"""The output folder of a validation: every forecast beside its measurement, and the picture of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lbopt import numbers
from lbopt.hardware.calibrated import Forecast
from lbopt.report.contents import Contents, write_folder
from lbopt.report.figures import COLOURS, new_figure
from lbopt.table import Table

_PERCENT = numbers.fixed(0, 100, " %")
_SIGNED = numbers.fixed(0, 100)


@dataclass(frozen=True, slots=True)
class Validation:
    """Forecasts of steps that the law had not seen.

    Parameters
    ----------
    left_out
        Of every source that the law learns from, by the others; the worst first.
    never_used
        Of the sources that were drawn before the first fit, and that no fit has seen.
    """

    left_out: tuple[Forecast, ...]
    never_used: tuple[Forecast, ...]

    @property
    def error(self) -> float:
        """Median over the sources left out of their errors."""
        return float(np.median([one.error for one in self.left_out]))

    @property
    def covered(self) -> float:
        """Share of the rows left out that lie within their interval."""
        return float(np.concatenate([one.covered for one in self.left_out]).mean())

    @property
    def width(self) -> float:
        """Median over the rows left out of high over low."""
        return float(np.median(np.concatenate([one.high / one.low for one in self.left_out])))

    @property
    def width_of_sources(self) -> float:
        """Median over the sources left out of their widths."""
        return float(np.median([one.width for one in self.left_out]))


def validation_tables(validation: Validation) -> list[Table]:
    """Return the unused sources, and those that were left out in turn."""
    rows = sum(len(one.steps) for one in validation.left_out)
    return [
        _table(
            "Sources that no fit has seen",
            "Drawn by a seed before any fit of theirs. The law was changed, for reasons that the other sources give, "
            "after the first two had been forecast once, and all three by a law that was dropped: no error is quite "
            "blind.",
            validation.never_used,
        ),
        _table(
            "Sources left out in turn",
            "Each forecast by the law that the others calibrate. Median error of the "
            f"{len(validation.left_out)} sources {numbers.fixed(1, 100, ' %')(validation.error)}; of {rows} rows "
            f"{_PERCENT(validation.covered)} lie within their 90 % interval, whose ends are a factor of "
            f"{validation.width:.2f} apart in the median of the rows, {validation.width_of_sources:.2f} of the "
            "sources. The form of the law was chosen with these errors in view, so they flatter it a little.",
            validation.left_out,
        ),
    ]


def _table(title: str, caption: str, forecasts: Sequence[Forecast]) -> Table:
    return Table(
        title=title,
        caption=caption + " Error is |forecast / measured − 1|, its median over the rows; lean has the sign.",
        headers=("source", "devices", "rows", "error", "lean", "inside", "high / low"),
        rows=[
            (
                one.source,
                ", ".join(dict.fromkeys(step.device for step in one.steps)),
                str(len(one.steps)),
                _PERCENT(one.error),
                f"{'+' if np.median(one.errors) > 0 else ''}{_SIGNED(float(np.median(one.errors)))} %",
                f"{int(one.covered.sum())} of {len(one.steps)}",
                numbers.fixed(2)(one.width),
            )
            for one in forecasts
        ],
    )


def forecasts_csv(validation: Validation) -> list[dict[str, Any]]:
    """Return a row per measured step."""
    kinds = [("left out", validation.left_out), ("never used", validation.never_used)]
    return [
        {
            "kind": kind,
            "source": one.source,
            "place": step.place,
            "device": step.device,
            "model": step.model,
            "devices": step.devices,
            "running": step.running,
            "context_tokens": step.context_tokens,
            "measured_milliseconds": 1e3 * step.seconds,
            "forecast_milliseconds": 1e3 * float(one.median[i]),
            "low_milliseconds": 1e3 * float(one.low[i]),
            "high_milliseconds": 1e3 * float(one.high[i]),
            "nominal_milliseconds": 1e3 * float(one.nominal[i]),
        }
        for kind, forecasts in kinds
        for one in forecasts
        for i, step in enumerate(one.steps)
    ]


FORMAT = "lbopt-validation"
FORMAT_VERSION = 1


def write_validation_folder(validation: Validation, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""
    account = {
        "never_used": [one.source for one in validation.never_used],
        "left_out": {"error": validation.error, "covered": validation.covered, "width": validation.width},
    }
    contents = Contents(
        tables={"forecasts": forecasts_csv(validation)}, figures={"validation": validation_figure(validation)}
    )
    write_folder(folder, FORMAT, FORMAT_VERSION, command, lambda _made: contents, account)


def validation_figure(validation: Validation) -> Figure:
    """Return forecast against measurement, with intervals: on the line is right, and a bar across it is covered."""
    figure, axes = new_figure(6.4, 5.6)
    kinds = (("a source left out", validation.left_out, "#8c959f"), ("a source never used", validation.never_used, ""))
    every = []
    for label, forecasts, colour in kinds:
        for place, one in enumerate(forecasts):
            own = colour or COLOURS[place % len(COLOURS)]
            measured, ends = 1e3 * one.measured, 1e3 * np.stack([one.median - one.low, one.high - one.median])
            shown = (label if place == 0 else None) if colour else one.source
            axes.errorbar(
                measured, 1e3 * one.median, ends, fmt="o", markersize=3.5, linewidth=0.8, color=own, label=shown
            )
            every += [1e3 * one.low, 1e3 * one.high, measured]
    ends = np.array([np.concatenate(every).min() / 1.1, np.concatenate(every).max() * 1.1])
    axes.plot(ends, ends, color="black", linewidth=1.0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("measured step (ms)")
    axes.set_ylabel("forecast (ms), median and where 90 % of the draws lie")
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    return figure
