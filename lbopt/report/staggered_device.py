"""What figure 6 of SBS plots, with a latency: time to first token and wait on the device against load."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from lbopt.report.figures import COLOURS, GREY, error_line, panels_of
from lbopt.report.staggered_words import mean_of, values_of
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import PLACES, StaggeredOutcome
from lbopt.studies.staggered.rows import Key

#: Rules with their colours: two baselines, as printed, and sent ahead with predictions 10 % off.
_RULES = {"round-robin": COLOURS[7], "jsq": COLOURS[6], "staggered": COLOURS[1], "ahead-10": COLOURS[0]}
#: Lines and marks of the latencies, in ascending order.
_LINES: tuple[dict[str, Any], ...] = tuple(
    {"linestyle": line, "marker": mark} for line, mark in (((0, (1, 1)), "x"), ("-", "o"), ("--", "s"), ("-.", "^"))
)
_ROWS = (("ttft", "mean time to first token (s)"), ("on_device", "mean wait on the device (s)"))
#: Beyond so many times the largest value of a baseline, a queue that grows without end tells the length of the run.
_BEYOND = 2.0
#: s. Below that a wait on the device is none.
_LEAST = 1e-3


def device_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a column a class: time to first token above, wait on the device below; a line a rule and latency."""
    measured = [str(name) for name in values_of(outcome, "ahead", "fleet")]
    fleets = [name for name in measured if name in PLACES] or measured[:3]
    figure, panels = panels_of(2, len(fleets), 7.0)
    latencies = sorted(float(value) for value in values_of(outcome, "ahead", "latency"))
    for column, fleet in enumerate(fleets):
        for row, (quantity, said) in enumerate(_ROWS):
            axes = panels[row][column]
            most = 0.0
            for rule, colour in _RULES.items():
                for style, latency in zip(_LINES, latencies, strict=False):
                    keys: dict[str, Key] = {"fleet": fleet, "latency": latency, "contender": rule}
                    points = _points(outcome, quantity, keys)
                    if rule in ("round-robin", "jsq"):
                        most = max([most, *(value.mean for _, value in points)])
                    loads = [100 * load for load, _ in points]
                    error_line(axes, [value for _, value in points], x=loads, color=colour, markersize=3.5, **style)
            axes.set(yscale="log", ylim=(_LEAST if row else None, _BEYOND * most if most else None))
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if row else (1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_locator(NullLocator())
            if row:
                axes.set_xlabel("load (% of saturation)")
            else:
                axes.set_title(fleet, fontsize=10, loc="left")
            if column == 0:
                axes.set_ylabel(said)
    handles = [Line2D([], [], color=colour, label=rule) for rule, colour in _RULES.items()]
    handles += [
        Line2D([], [], color=GREY, label=f"{1e3 * latency:g} ms", markersize=3.5, **style)
        for style, latency in zip(_LINES, latencies, strict=False)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _points(outcome: StaggeredOutcome, quantity: str, keys: dict[str, Key]) -> list[tuple[float, MeanOverSeeds]]:
    found = []
    for load in values_of(outcome, "ahead", "load"):
        value = mean_of(outcome, "ahead", quantity, keys | {"load": load})
        if value is not None and math.isfinite(value.mean):
            found.append((float(load), value))
    return found
