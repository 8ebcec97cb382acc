"""The picture of the dilution table: published gains, what the law makes of their first, and ours, against b."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, line_style, new_figure
from lbopt.studies.reproduction import ReproductionOutcome, Row
from lbopt.studies.reproduction.barrier_tax import LOAD
from lbopt.studies.reproduction.dilution_law import COLUMNS, diluted, published_barrier

#: So that intervals of two rules do not hide each other.
_ASIDE = 0.02


def dilution_figure(outcome: ReproductionOutcome) -> Figure | None:
    """Return the gains against the overhead b; None where the item was not run."""
    groups = {rule: gains for rule in COLUMNS if (gains := _gains(outcome, rule))}
    if not groups:
        return None
    figure, axes = new_figure()
    overheads, x = np.linspace(0, 1, 50), published_barrier()
    for index, (rule, rows) in enumerate(groups.items()):
        b = np.array(list(rows))
        published = [row.question.printed.value or 0.0 for row in rows.values()]
        law = [diluted(published[0], x, float(one)) for one in overheads]
        axes.plot(overheads, law, linewidth=1.2, label=f"{rule}, law from b = 0 with x = {x:.2f}", **line_style(index))
        axes.plot(b, published, "o", color=COLOURS[index], label=f"{rule}, published")
        ours = [row.ours for row in rows.values()]
        middle = np.array([one.mean for one in ours])
        half = np.array([0.0 if one.high is None else one.high - one.mean for one in ours])
        aside = b + (index - 0.5) * _ASIDE
        axes.errorbar(aside, middle, half, fmt="s", markerfacecolor="none", color=COLOURS[index], capsize=3)
        axes.plot([], [], "s", markerfacecolor="none", color=COLOURS[index], label=f"{rule}, ours")
    axes.set_xlabel("b, overhead that balance does not touch")
    axes.set_ylabel("throughput over JSQ by count (%)")
    axes.axhline(0.0, color="#57606a", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8)
    return figure


def _gains(outcome: ReproductionOutcome, rule: str) -> dict[float, Row]:
    """Return the rows of a rule whose loads did not depend on the law, by their overhead."""
    found = {}
    for row in outcome.of("dilution"):
        asked = row.question
        start, _, overhead = asked.quantity.partition(f"throughput gain, {rule} over JSQ, b = ")
        if start == "" and overhead and asked.arrivals == f"Poisson by steps, load {LOAD:g}":
            found[float(overhead)] = row
    return found
