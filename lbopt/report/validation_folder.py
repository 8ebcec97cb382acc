"""The output folder of a validation: every forecast beside its measurement, and the picture of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lbopt.report.contents import Contents, write_folder
from lbopt.report.figures import COLOURS, new_figure
from lbopt.report.validation_tables import Validation, forecasts_csv

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
