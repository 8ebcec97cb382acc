"""Pictures of an audit: what other rules change, and the loads of the fleet over the logged time."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, GREY, legend_below, new_figure
from lbopt.studies.audit import AuditOutcome

_WIDTH = 5.2


def draw_rules(outcome: AuditOutcome, axes: Axes) -> None:
    """Draw each rule's change of the mean time per token with its interval, best on top."""
    runs = sorted(outcome.runs[1:], key=lambda run: -run.tpot_mean)
    for place, run in enumerate(runs):
        low, high = run.change_interval
        colour = COLOURS[0] if run.admission == "immediate" else COLOURS[1]
        marker = "s" if run.admission == "immediate" else "o"
        axes.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=2)
        axes.plot([100 * run.change], [place], marker=marker, color=colour, markersize=6)
    axes.axvline(0.0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(runs)), [run.rule for run in runs])
    axes.set_xlabel("change of the mean time per token (%)")
    axes.plot([], [], marker="s", color=COLOURS[0], label="binds on arrival")
    axes.plot([], [], marker="o", color=COLOURS[1], label="needs a queue")
    legend_below(axes)


def rules_figure(outcome: AuditOutcome) -> Figure | None:
    """Return the picture of the rules; None where none was run."""
    if len(outcome.runs) < 2:
        return None
    figure, axes = new_figure(_WIDTH, height=0.32 * len(outcome.runs) + 1.4)
    draw_rules(outcome, axes)
    return figure


def loads_figure(outcome: AuditOutcome) -> Figure | None:
    """Return the picture of the heaviest and the mean load over time; None where the log is too short for one."""
    if len(outcome.over_time) < 2:
        return None
    figure, axes = new_figure(_WIDTH, height=3.2)
    when = [point.seconds for point in outcome.over_time]
    unit, factor = ("s", 1.0) if when[-1] < 600 else ("min", 60.0) if when[-1] < 36_000 else ("h", 3600.0)
    when = [value / factor for value in when]
    heaviest = [point.heaviest for point in outcome.over_time]
    mean = [point.mean for point in outcome.over_time]
    axes.fill_between(when, mean, heaviest, color=COLOURS[1], alpha=0.2, label="waits at the barrier")
    axes.plot(when, heaviest, color=COLOURS[1], label="heaviest worker")
    axes.plot(when, mean, color=COLOURS[0], label="mean worker")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time in the log ({unit})")
    axes.set_ylabel("load (tokens)")
    legend_below(axes)
    return figure
