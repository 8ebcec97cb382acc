"""The page of a gap study: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
from matplotlib.figure import Figure

from lbopt.report import numbers
from lbopt.report.figures import new_figure, png_of
from lbopt.report.gap_distribution import draw_gap_distribution
from lbopt.report.gap_tables import gap_rows, gap_tables, long_run_tables
from lbopt.report.imbalance_course import draw_imbalance_course
from lbopt.report.waiting_trade import draw_waiting_trade
from lbopt.studies.gap import GapOutcome, PolicyGap
from lbopt.studies.gap.decisions import ALL, AS_RUN


@dataclass(frozen=True, slots=True)
class Picture:
    """A finished figure: file name, title, caption and PNG bytes."""

    file: str
    title: str
    caption: str
    data: bytes

    @property
    def png(self) -> str:
        """The bytes as text, for a page that needs nothing else."""
        return base64.b64encode(self.data).decode("ascii")


def gap_pictures(outcome: GapOutcome) -> list[Picture]:
    """Draw every picture that the outcome has data for."""
    pictures = []
    if any(s.standing != "open" and s.decisions for s in outcome.solved):
        rows = {name for solved in outcome.solved for name in solved.decisions}
        figure, axes = new_figure(height=0.42 * len(rows) + 1.4)
        draw_gap_distribution(outcome, axes)
        pictures.append(
            _picture(figure, "gap_distribution.png", "One step: gaps of all states", "Each dot is one decision.")
        )
    if outcome.long_runs:
        figure, axes = new_figure(width=9.5)
        draw_imbalance_course(outcome, axes)
        caption = "First seed; each line averages neighbouring steps. Logarithmic."
        pictures.append(_picture(figure, "imbalance_course.png", "Long run: imbalance over time", caption))
        figure, axes = new_figure(width=9.5)
        draw_waiting_trade(outcome, axes)
        caption = "First seed. Down and left is better: balanced without starving any request."
        pictures.append(_picture(figure, "waiting_trade.png", "Long run: balance against waiting", caption))
    return pictures


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
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(files("lbopt.report").joinpath("gap_page.html.jinja").read_text("utf-8"))
    return template.render(
        version=provenance["versions"]["lbopt"],
        trace_name=outcome.trace.get("name", "frozen problems"),
        trace_line=_trace_line(outcome),
        fleet_line=str(outcome.config.scenario),
        interrupted=outcome.interrupted,
        lead=lead(outcome),
        notes=outcome.notes,
        tables=gap_tables(outcome) + long_run_tables(outcome),
        figures=pictures,
        command=provenance["command"],
        folder=folder,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )


def lead(outcome: GapOutcome) -> str:
    """Return the answer in three sentences."""
    if not outcome.solved:
        return "No step problem was solved."
    parts = [
        f"{len(outcome.solved)} step problems: {outcome.count('proved')} solved to proven optimality, "
        f"{outcome.count('claimed')} optimal by a solver's own word, {outcome.count('open')} open."
    ]
    rows = [
        row
        for row in gap_rows(outcome)
        if row.behaviour == ALL and not row.policy.endswith(AS_RUN) and not math.isnan(row.gap_mean_tokens)
    ]
    if rows:
        best = min(rows, key=lambda row: row.gap_mean_tokens)
        worst = max(rows, key=lambda row: row.gap_mean_tokens)
        parts.append(f"Nearest to the optimum is {best.policy}, {_distance(best)}.")
        parts.append(f"Farthest is {worst.policy}, {_distance(worst)}.")
    return " ".join(parts)


def _distance(row: PolicyGap) -> str:
    mean, median = numbers.tokens(row.gap_mean_tokens), numbers.tokens(row.gap_median_tokens)
    barrier = numbers.share(row.gap_mean_share)
    return f"{mean} tokens above it on average ({barrier} of the barrier), {median} in the median"


def _trace_line(outcome: GapOutcome) -> str:
    trace = outcome.trace
    if not trace:
        return "frozen problems"
    left_out = "".join(f", {count:,} left out ({why})" for why, count in trace["left_out"].items())
    return f"{trace['name']}, {trace['requests']:,} requests{left_out}"


def _picture(figure: Figure, file: str, title: str, caption: str) -> Picture:
    return Picture(file, title, caption, png_of(figure))
