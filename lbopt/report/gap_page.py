"""The page of a gap study: one HTML file that needs nothing else."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any

from lbopt import numbers
from lbopt.report.figures import new_figure
from lbopt.report.gap_distribution import draw_gap_distribution
from lbopt.report.gap_tables import gap_rows, gap_tables, long_run_tables
from lbopt.report.imbalance_course import draw_imbalance_course
from lbopt.report.page import Picture, render_page
from lbopt.report.waiting_trade import draw_waiting_trade
from lbopt.simulator import Metrics
from lbopt.studies.gap import GapOutcome, PolicyGap
from lbopt.studies.gap.decisions import ALL, AS_RUN
from lbopt.table import Table

#: Inches: a figure of this width is readable on a phone.
_WIDTH = 5.2
#: Share of slots in use from which on single steps decide as much as the course of a run.
SATURATED = 0.9


def gap_pictures(outcome: GapOutcome) -> list[Picture]:
    """Draw every picture that shows a difference; `left_out` says why others are missing."""
    pictures = []
    if _differ(_gaps(outcome)):
        rows = {name for solved in outcome.solved for name in solved.decisions}
        figure, axes = new_figure(_WIDTH, height=0.36 * len(rows) + 1.5)
        draw_gap_distribution(outcome, axes)
        caption = "Each dot is one decision."
        pictures.append(Picture.of(figure, "gap_distribution", "One step: gaps of all states", caption))
    lines = len(outcome.config.policies)
    if _unbalanced(outcome):
        figure, axes = new_figure(_WIDTH, height=3.2 + 0.1 * lines)
        draw_imbalance_course(outcome, axes)
        caption = "First seed; each line averages neighbouring steps. Logarithmic."
        pictures.append(Picture.of(figure, "imbalance_course", "Long run: imbalance over time", caption))
    if _waiting(outcome):
        figure, axes = new_figure(_WIDTH, height=3.2 + 0.1 * lines)
        draw_waiting_trade(outcome, axes)
        caption = "First seed. Down and left is better: less imbalance without long waits."
        pictures.append(Picture.of(figure, "waiting_trade", "Long run: imbalance against the longest wait", caption))
    return pictures


def left_out(outcome: GapOutcome) -> list[str]:
    """Return a sentence for every picture that would show nothing."""
    sentences = []
    gaps = _gaps(outcome)
    if gaps and not _differ(gaps):
        sentences.append("No figure of the gaps: all decisions have the same gap.")
    if outcome.long_runs and not _unbalanced(outcome):
        sentences.append("No figure of the imbalance over time: the imbalance of every long run is zero.")
    if outcome.long_runs and not _waiting(outcome):
        sentences.append("No figure of imbalance against waiting: no request waited in any long run.")
    return sentences


def render_gap_page(outcome: GapOutcome, pictures: list[Picture], provenance: dict[str, Any], folder: str) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    outcome
        The study.
    pictures
        Its pictures.
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
    idle = {policy: fmean(one.idle_share for one in metrics) for policy, metrics in runs.items()}
    best, worst = min(tpot, key=tpot.__getitem__), max(tpot, key=tpot.__getitem__)
    milliseconds, share = numbers.milliseconds, numbers.share
    sentence = (
        f"Over time: {best} takes {milliseconds(tpot[best])} ms per token with {share(idle[best])} idle at the "
        f"barrier, {worst} {milliseconds(tpot[worst])} ms with {share(idle[worst])}."
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


def _gaps(outcome: GapOutcome) -> list[int]:
    """Return all gaps of closed states, tokens."""
    closed = [solved for solved in outcome.solved if solved.standing != "open"]
    return [decision.objective - solved.best for solved in closed for decision in solved.decisions.values()]


def _differ(gaps: list[int]) -> bool:
    return len(set(gaps)) > 1


def _unbalanced(outcome: GapOutcome) -> bool:
    return any(run.metrics.imbalance_tokens > 0 for run in outcome.long_runs)


def _waiting(outcome: GapOutcome) -> bool:
    return any(run.metrics.waiting_max_steps > 0 for run in outcome.long_runs)


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
