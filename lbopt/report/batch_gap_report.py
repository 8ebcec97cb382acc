"""How a gap study of prefill batches is shown: tables, the frozen batches, the picture."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt import numbers
from lbopt.report.figures import COLOURS, DASHES, new_figure
from lbopt.report.study_report import StudyReport
from lbopt.studies.batches import BatchesOutcome, BatchGap, JudgedBatch
from lbopt.studies.batches.study import ALL
from lbopt.table import Table

_COLUMNS: tuple[tuple[str, str, numbers.Format], ...] = (
    ("straggler_gap_mean_share", "straggler gap", numbers.share),
    ("straggler_gap_p95_share", "P95", numbers.share),
    ("straggler_gap_max_share", "max", numbers.share),
    ("straggler_optimal_share", "optimal", numbers.share),
    ("seconds_lost_mean", "passes longer (ms)", numbers.milliseconds),
    ("fill_gap_mean_share", "fill gap", numbers.share),
    ("fill_gap_max_share", "max", numbers.share),
    ("overshoot_mean_tokens", "overshoot (tokens)", numbers.tokens),
)


def batch_gap_tables(outcome: BatchesOutcome) -> list[Table]:
    """Return what a terminal shows: a table for all batches, and one for each behaviour where there are several."""
    if not outcome.judged:
        return []
    rows = outcome.rows()
    return [
        _table(behaviour, [row for row in rows if row.behaviour == behaviour])
        for behaviour in dict.fromkeys(row.behaviour for row in rows)
    ]


def _table(behaviour: str, rows: list[BatchGap]) -> Table:
    first = rows[0]
    where = "over all batches" if behaviour == ALL else f"in batches under {behaviour}"
    return Table(
        f"One batch: gap to the optimum, {where}",
        f"{first.batches} batches: both optima of {first.proved} proved, of {first.claimed} known in part by "
        f"a solver's word; {first.straggler_open} least stragglers and {first.fill_open} fullest passes are open and "
        "enter no average. Straggler: tokens of the fullest unit with the whole queue placed, above the least. Fill: "
        "tokens that the next pass could hold and does not, as a share of the chunks of all units.",
        ("rule", *(header for _, header, _ in _COLUMNS)),
        [
            (row.rule, *(form(getattr(row, name)) for name, _, form in _COLUMNS))
            for row in sorted(rows, key=lambda row: (row.straggler_gap_mean_share, row.rule))
        ],
    )


def batch_gap_csv(outcome: BatchesOutcome) -> list[dict[str, Any]]:
    """Return the rows of the tables with full precision."""
    return [row.to_dict() for row in outcome.rows()]


def batches_csv(outcome: BatchesOutcome) -> list[dict[str, Any]]:
    """Return a row per batch and rule; what is not known to be the optimum leaves the gap empty."""
    rows = []
    for number, one in enumerate(outcome.judged):
        state, batch = one.state, one.state.batch
        placed, filled = one.straggler_standing != "open", one.fill_standing != "open"
        shared = {
            "batch": number,
            "behaviour": state.behaviour,
            "time_seconds": state.dispatch.time,
            "instance": state.dispatch.instance,
            "requests": batch.num_requests,
            "tokens": int(batch.length.sum()),
            "load_tokens": int(batch.load.sum()),
            "least_straggler": one.placement.straggler,
            "straggler_bound": one.placement.bound,
            "straggler_standing": one.straggler_standing,
            "most_filled": one.fill.filled,
            "filled_bound": one.fill.bounds[0],
            "fill_standing": one.fill_standing,
        }
        rows += [
            shared
            | {
                "rule": rule.rule,
                "straggler": rule.straggler,
                "filled": rule.filled,
                "overshoot": rule.overshoot,
                "straggler_gap_share": one.straggler_gap(rule) if placed else None,
                "seconds_lost": one.seconds_lost(rule) if placed else None,
                "fill_gap_share": one.fill_gap(rule) if filled else None,
            }
            for rule in one.rules
        ]
    return rows


def batch_gap_figure(outcome: BatchesOutcome) -> Figure:
    """Return the figure of `draw_batch_gaps`."""
    figure, axes = new_figure(8.6, 4.2)
    draw_batch_gaps(outcome, axes)
    return figure


def draw_batch_gaps(outcome: BatchesOutcome, axes: Axes) -> None:
    """Draw a curve for each rule (colour) and behaviour (dash) over the batches whose optimum is known.

    The first rules have the widest lines, so that curves which coincide show.
    """
    for place, behaviour in enumerate(outcome.config.behaviours):
        known = [one for one in outcome.judged if one.state.behaviour == behaviour and one.straggler_standing != "open"]
        for index, rule in enumerate(outcome.config.rules):
            gaps = sorted(
                (100 * one.straggler_gap(r) for one in known for r in one.rules if r.rule == rule), reverse=True
            )
            if gaps:
                axes.step(
                    [*gaps, 0],
                    [100 * (rank + 1) / len(gaps) for rank in range(len(gaps))] + [100],
                    where="post",
                    label=f"{rule}, batches under {behaviour}",
                    color=COLOURS[index % len(COLOURS)],
                    linestyle=DASHES[place % len(DASHES)],
                    linewidth=1 + 2.5 * (1 - (index + 1) / len(outcome.config.rules)),
                )
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 102)
    axes.set_xlabel("straggler above the least (%; linear up to 0.1, then logarithmic)")
    axes.set_ylabel("batches with this gap or more (%)")
    if axes.lines:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def batch_record(one: JudgedBatch) -> dict[str, Any]:
    """Return one line of batches.jsonl: the frozen batch and both optima with their units."""
    placement, fill = one.placement, one.fill
    return one.state.to_dict() | {
        "least_straggler": {
            "standing": one.straggler_standing,
            "tokens": placement.straggler,
            "bound": placement.bound,
            "proof": placement.proof,
            "unit": placement.unit.tolist(),
        },
        "best_fill": {
            "standing": one.fill_standing,
            "tokens": fill.filled,
            "bound": fill.bounds[0],
            "proof": fill.proof,
            "unit": fill.unit.tolist(),
        },
    }


REPORT = StudyReport(
    tables=batch_gap_tables,
    csv={"gap": batch_gap_csv, "batches": batches_csv},
    records={"batches": lambda outcome: map(batch_record, outcome.judged)},
    figures=lambda outcome: {"gaps": batch_gap_figure(outcome)},
    draw=draw_batch_gaps,
    written="tables, batches and picture",
)
