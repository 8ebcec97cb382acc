"""How a gap study is shown: the page, one HTML file that needs nothing else, its pictures, and the files beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lbopt import numbers
from lbopt.report.contents import Made
from lbopt.report.figures import COLOURS, legend_below, line_style, new_figure
from lbopt.report.gap_tables import (
    difference_csv,
    gap_csv,
    gap_rows,
    gap_tables,
    long_run_csv,
    long_run_tables,
    step_record,
)
from lbopt.report.page import Picture, files_of, render_page
from lbopt.report.study_report import StudyReport
from lbopt.simulator import Metrics
from lbopt.studies.gap import GapOutcome, LongRun, PolicyGap
from lbopt.studies.gap.decisions import ALL, AS_RUN
from lbopt.table import Table


def draw_gap_distribution(outcome: GapOutcome, axes: Axes) -> None:
    """Draw one row of dots per policy with median and mean; policies sorted by mean gap, best on top."""
    closed = [s for s in outcome.solved if s.standing != "open"]
    policies = list(dict.fromkeys(name for s in closed for name in s.decisions))
    gaps = {p: np.array([s.decisions[p].objective - s.best for s in closed if p in s.decisions]) for p in policies}
    order = sorted(policies, key=lambda p: -gaps[p].mean())
    jitter = np.random.default_rng(0)
    for row, policy in enumerate(order):
        values = gaps[policy]
        height = row + jitter.uniform(-0.22, 0.22, values.size)
        axes.scatter(values, height, s=10, alpha=0.5, color=COLOURS[0], linewidths=0)
        axes.plot([np.median(values)] * 2, [row - 0.36, row + 0.36], color=COLOURS[1], linewidth=2)
        axes.plot([values.mean()], [row], marker="D", color=COLOURS[6], markersize=5)
    axes.plot([], [], color=COLOURS[1], linewidth=2, label="median")
    axes.plot([], [], marker="D", color=COLOURS[6], linestyle="none", markersize=5, label="mean")
    axes.scatter([], [], s=9, color=COLOURS[0], label="one state")
    axes.set_yticks(range(len(order)), order)
    axes.set_xscale("symlog", linthresh=100)
    axes.set_xlim(left=-5)
    axes.margins(x=0.05)
    axes.set_xlabel("imbalance above the optimum\n(tokens, logarithmic above 100)")
    legend_below(axes, columns=3)


def draw_imbalance_course(outcome: GapOutcome, axes: Axes) -> None:
    """Draw one line per policy, first seed, averaged over stretches of steps; equal runs share a line."""
    alike: dict[bytes, list[LongRun]] = {}
    for run in outcome.long_runs:
        if run.imbalance_course is not None:
            alike.setdefault(run.imbalance_course.tobytes(), []).append(run)
    groups = sorted(alike.values(), key=lambda runs: -runs[0].metrics.imbalance_tokens)
    for index, runs in enumerate(groups):
        course, metrics = runs[0].imbalance_course, runs[0].metrics
        assert course is not None
        window = metrics.last_step - metrics.first_step + 1
        steps = metrics.first_step + (np.arange(course.size) + 0.5) * window / course.size
        label = " = ".join(run.policy for run in runs)
        axes.plot(steps, course, label=label, linewidth=1.2, **line_style(index))
    if any(runs[0].metrics.imbalance_tokens > 0 for runs in groups):  # a single worker never waits
        axes.set_yscale("log")
    axes.set_xlabel("decode step")
    axes.set_ylabel("imbalance (tokens)")
    legend_below(axes, title="worst first")


def draw_waiting_trade(outcome: GapOutcome, axes: Axes) -> None:
    """Draw the longest wait against the mean imbalance of each long run of the first seed; equal runs share a point."""
    alike: dict[tuple[float, int], list[LongRun]] = {}
    for run in outcome.long_runs:
        if run.seed == outcome.config.seed:
            alike.setdefault((run.metrics.imbalance_tokens, run.metrics.waiting_max_steps), []).append(run)
    for index, ((imbalance, wait), runs) in enumerate(sorted(alike.items()), start=1):
        colour = COLOURS[(index - 1) % len(COLOURS)]
        marker = "o" if runs[0].admission == "pooled" else "s"
        axes.scatter([imbalance], [wait], marker=marker, s=45, color=colour, zorder=3)
        axes.annotate(str(index), (imbalance, wait), textcoords="offset points", xytext=(6, 4), fontsize=9)
        names = " = ".join(f"{run.policy}" for run in runs)
        axes.plot([], [], linestyle="none", marker=marker, color=colour, label=f"{index}  {names}")
    if all(imbalance > 0 for imbalance, _ in alike):
        axes.set_xscale("log")
    elif any(imbalance > 0 for imbalance, _ in alike):
        axes.set_xscale("symlog", linthresh=100)
    axes.set_yscale("symlog", linthresh=1)
    axes.margins(0.12)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("mean imbalance (tokens)")
    axes.set_ylabel("longest wait (steps)")
    legend_below(axes, title="round: pooled, square: immediate")


#: Inches: a figure of this width is readable on a phone.
_WIDTH = 5.2


class Figured(NamedTuple):
    """A picture of the page."""

    draw: Callable[[GapOutcome, Axes], None]
    stem: str
    title: str
    caption: str
    nothing: str
    height: float


_GAPS = (
    draw_gap_distribution,
    "gap_distribution",
    "One step: gaps of all states",
    "Each dot is one decision.",
    "No figure of the gaps: all decisions have the same gap.",
)
_COURSE = (
    draw_imbalance_course,
    "imbalance_course",
    "Long run: imbalance over time",
    "First seed; each line averages neighbouring steps. Logarithmic.",
    "No figure of the imbalance over time: the imbalance of every long run is zero.",
)
_TRADE = (
    draw_waiting_trade,
    "waiting_trade",
    "Long run: imbalance against the longest wait",
    "First seed. Down and left is better: less imbalance without long waits.",
    "No figure of imbalance against waiting: no request waited in any long run.",
)
#: Share of slots in use from which on single steps decide as much as the course of a run.
SATURATED = 0.9


def _shown(outcome: GapOutcome) -> list[tuple[bool, bool, Figured]]:
    """Return of each picture whether there is anything to draw, whether it differs, and how it is drawn."""
    rows = {name for solved in outcome.solved for name in solved.decisions}
    closed = [solved for solved in outcome.solved if solved.standing != "open"]
    gaps = [one.objective - solved.best for solved in closed for one in solved.decisions.values()]
    runs = [run.metrics for run in outcome.long_runs]
    height = 3.2 + 0.1 * len(outcome.config.policies)
    return [
        (bool(gaps), len(set(gaps)) > 1, Figured(*_GAPS, 0.36 * len(rows) + 1.5)),
        (bool(runs), any(one.imbalance_tokens > 0 for one in runs), Figured(*_COURSE, height)),
        (bool(runs), any(one.waiting_max_steps > 0 for one in runs), Figured(*_TRADE, height)),
    ]


def gap_pictures(outcome: GapOutcome) -> list[Picture]:
    """Draw every picture that shows a difference; `left_out` says why others are missing."""
    pictures = []
    for _, differs, one in _shown(outcome):
        if differs:
            figure, axes = new_figure(_WIDTH, height=one.height)
            one.draw(outcome, axes)
            pictures.append(Picture.of(figure, one.stem, one.title, one.caption))
    return pictures


def left_out(outcome: GapOutcome) -> list[str]:
    """Return a sentence for every picture that would show nothing."""
    return [one.nothing for there, differs, one in _shown(outcome) if there and not differs]


def render_gap_page(outcome: GapOutcome, pictures: list[Picture], provenance: dict[str, Any], folder: str) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    provenance
        Versions, processor, time and command.
    folder
        Name of the folder, as the page shows it.
    """
    return render_page(
        "gap_page.html.jinja",
        version=provenance["versions"]["lbopt"],
        trace_name=outcome.trace.get("name", "frozen problems"),
        trace_line=_trace_line(outcome),
        fleet_line=str(outcome.config.scenario),
        interrupted=outcome.interrupted,
        lead=lead(outcome),
        notes=outcome.notes,
        tables=tables_in_order(outcome),
        figures=pictures,
        left_out=left_out(outcome),
        command=provenance["command"],
        folder=folder,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )


def lead(outcome: GapOutcome) -> str:
    """Return the answer in a few sentences."""
    whole = over_time(outcome)
    if not outcome.solved:
        return f"No step problem was solved. {whole or ''}".strip()
    parts = [
        f"{len(outcome.solved)} step problems: {outcome.count('proved')} with a proved optimum, "
        f"{outcome.count('searched')} with one by the search that was not checked, "
        f"{outcome.count('claimed')} with an optimum claimed by a solver, {outcome.count('open')} open."
    ]
    rows = [
        row
        for row in gap_rows(outcome)
        if row.behaviour == ALL and not row.policy.endswith(AS_RUN) and not math.isnan(row.gap_mean_tokens)
    ]
    means = [row.gap_mean_tokens for row in rows]
    nearest = [row for row in rows if row.gap_mean_tokens == min(means)]
    farthest = [row for row in rows if row.gap_mean_tokens == max(means)]
    if len(rows) == 1:
        parts.append(f"{rows[0].policy} is {_distance(rows[0])}.")
    elif len(nearest) == len(rows) > 1:
        parts.append(f"All {len(rows)} policies have the same mean gap; {rows[0].policy} is {_distance(rows[0])}.")
    elif rows:
        parts.append(f"{_are('Nearest to the optimum', nearest)}, {_distance(nearest[0])}.")
        parts.append(f"{_are('Farthest', farthest)}, {_distance(farthest[0])}.")
    if whole is not None:
        parts.insert(len(parts) if is_saturated(outcome) else 0, whole)
    return " ".join(parts)


def over_time(outcome: GapOutcome) -> str | None:
    """Return what rules did over whole runs, in a sentence; None where no two rules were run.

    Where slots are free, placing a step best is not what counts: requests that are placed together stay together.
    """
    runs: dict[str, list[Metrics]] = {}
    for run in outcome.long_runs:
        runs.setdefault(run.policy, []).append(run.metrics)
    if len(runs) < 2:
        return None
    tpot = {policy: fmean(one.tpot_mean_seconds for one in metrics) for policy, metrics in runs.items()}
    idle = {policy: numbers.share(fmean(one.idle_share for one in metrics)) for policy, metrics in runs.items()}
    best, worst = min(tpot, key=tpot.__getitem__), max(tpot, key=tpot.__getitem__)
    sentence = (
        f"Over time: {best} takes {numbers.milliseconds(tpot[best])} ms per token with {idle[best]} idle at the "
        f"barrier, {worst} {numbers.milliseconds(tpot[worst])} ms with {idle[worst]}."
    )
    if not is_saturated(outcome):
        full = fmean(one.occupancy for metrics in runs.values() for one in metrics)
        sentence += (
            f" Slots are {numbers.share(full)} full: rules differ over time, by which requests stay together, more "
            "than the gaps of single steps say."
        )
    return sentence


def is_saturated(outcome: GapOutcome) -> bool:
    """Whether requests always wait, as in a closed loop, or some rule left few slots free, or no rule was run."""
    full = [run.metrics.occupancy for run in outcome.long_runs]
    return outcome.config.scenario.arrivals == "closed" or not full or max(full) >= SATURATED


def tables_in_order(outcome: GapOutcome) -> list[Table]:
    """Return the tables, those of whole runs first where the fleet is not saturated."""
    steps, runs = gap_tables(outcome), long_run_tables(outcome)
    return steps + runs if is_saturated(outcome) else runs + steps


def _are(place: str, rows: list[PolicyGap]) -> str:
    names = [row.policy for row in rows]
    return f"{place} {'is' if len(names) == 1 else 'are'} {' and '.join(names)}"


def _distance(row: PolicyGap) -> str:
    mean, median = numbers.tokens(row.gap_mean_tokens), numbers.tokens(row.gap_median_tokens)
    barrier = numbers.share(row.gap_mean_share)
    return f"{mean} tokens above the optimum on average ({barrier} of the barrier), {median} in the median"


def _trace_line(outcome: GapOutcome) -> str:
    trace = outcome.trace
    if not trace:
        return "frozen problems"
    left_out = "".join(f", {count:,} left out ({why})" for why, count in trace["left_out"].items())
    return f"{trace['name']}, {trace['requests']:,} requests{left_out}"


def gap_files(outcome: GapOutcome, made: Made) -> dict[str, Any]:
    """Return the pictures and report.html."""
    pictures = gap_pictures(outcome)
    return {**files_of(pictures), "report.html": render_gap_page(outcome, pictures, made.how, str(made.folder))}


def gaps(outcome: GapOutcome) -> pd.DataFrame:
    """Return one row per policy and behaviour: one-step gaps to the optimum, smallest mean gap first."""
    frame = pd.DataFrame(gap_csv(outcome))
    return frame.sort_values(["behaviour", "gap_mean_tokens"], ignore_index=True) if len(frame) else frame


REPORT = StudyReport(
    tables=tables_in_order,
    csv={"gap": gap_csv, "long_runs": long_run_csv, "differences": difference_csv},
    records={"steps": lambda outcome: map(step_record, outcome.solved)},
    others=gap_files,
    frames={"gap": gaps},
    draw=draw_gap_distribution,
    lead=lambda outcome: [lead(outcome)],
    written="report",
    page="report.html",
    digests=True,
)
