"""The page of a race: one HTML file that needs nothing else."""

from __future__ import annotations

import math
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from lbopt.report.figures import legend_below, new_figure
from lbopt.report.page import Picture, render_page
from lbopt.report.race_numbers import ratio_bracket
from lbopt.report.race_profile import draw_profile
from lbopt.report.race_ratios import draw_ratios, ratio_rows
from lbopt.report.race_tables import race_tables
from lbopt.studies.race import RaceOutcome

#: Inches: a figure of this width is readable on a phone.
_WIDTH = 5.2
#: More panels than this are too small to read.
_MOST_PANELS = 12


def race_pictures(outcome: RaceOutcome) -> list[Picture]:
    """Draw every picture that the outcome has data for."""
    if all(record.status == "missing" for record in outcome.records):
        return []
    figure, axes = new_figure(_WIDTH, height=3.6 + 0.1 * len(outcome.config.solvers))
    draw_profile(outcome, axes)
    axes.set_xlabel("wall time of the solver proper (s)")
    axes.set_ylabel("share of instances closed")
    legend_below(axes)
    caption = (
        "Share of all instances closed within a time. Full lines: proved; dashed: a solver's own claims counted too."
    )
    pictures = [Picture.of(figure, "profile", "Performance profile", caption)]
    if 1 < len(outcome.groups) <= _MOST_PANELS:
        pictures.append(_panels(outcome))
    if ratio_rows(outcome):
        figure, axes = new_figure(_WIDTH, height=0.34 * len(ratio_rows(outcome)) + 1.3)
        draw_ratios(outcome, axes)
        title = f"How many times longer than {outcome.config.base}"
        caption = "A dot is an instance that both closed, a triangle one that only one of them closed within the limit."
        pictures.append(Picture.of(figure, "ratios", title, caption))
    return pictures


def render_race_page(outcome: RaceOutcome, pictures: list[Picture], provenance: dict[str, Any], command: str) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    outcome
        The race.
    pictures
        Its pictures.
    provenance
        Versions, processor, time and command.
    command
        The command line.
    """
    return render_page(
        "race_page.html.jinja",
        version=provenance["versions"]["lbopt"],
        machine=f"{provenance['processor']}, {provenance['cpu_count']} cores",
        interrupted=outcome.interrupted,
        lead=lead(outcome),
        contradictions=[str(one) for one in outcome.contradictions if one.grave],
        notes=outcome.notes + [f"Refuted claim: {one}." for one in outcome.contradictions if not one.grave],
        tables=race_tables(outcome),
        figures=pictures,
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )


def lead(outcome: RaceOutcome) -> str:
    """Return the answer in a few sentences."""
    limit = outcome.config.time_limit
    count = len(outcome.instances)
    parts = [f"{count:,} {'instance' if count == 1 else 'instances'}, at most {limit:g} s a run."]
    for solver in outcome.config.solvers:
        proved = outcome.share_closed(solver, math.inf, claims=False)
        closed = outcome.share_closed(solver, math.inf)
        if math.isnan(closed):
            parts.append(f"{solver}: nothing was run.")
            continue
        claimed = f" and claims {closed - proved:.0%} more" if closed > proved else ""
        parts.append(f"{solver} has {proved:.0%} proved{claimed}.")
    last = {r.solver: r for r in outcome.ratio_summaries()}
    parts.extend(
        f"{solver} takes {ratio_bracket(r.median)} the time of {outcome.config.base} in the median."
        for solver, r in last.items()
        if r.median is not None
    )
    return " ".join(parts)


def _panels(outcome: RaceOutcome) -> Picture:
    groups = outcome.groups
    across = 2
    down = -(-len(groups) // across)
    with rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(_WIDTH, 2.1 * down + 0.6), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel().tolist()
    for axes, group in zip(panels, groups, strict=False):
        draw_profile(outcome, axes, group)
        axes.grid(visible=True, alpha=0.25)
        axes.set_title(group, fontsize=8)
    for axes in panels[len(groups) :]:
        axes.set_axis_off()
    lines = {line.get_label(): line for axes in panels for line in axes.get_legend_handles_labels()[0]}
    figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    figure.supxlabel("wall time of the solver proper (s)", fontsize=9)
    figure.supylabel("share of instances closed", fontsize=9)
    return Picture.of(
        figure, "profile_by_group", "Performance profile, group by group", "The same, for each group alone."
    )
