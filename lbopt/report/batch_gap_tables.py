"""The table of a gap study of prefill batches, its rows as CSV, and every rule on every batch as CSV."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lbopt import numbers
from lbopt.studies.batches import BatchesOutcome, BatchGap
from lbopt.studies.batches.outcome import ALL
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
    return [asdict(row) for row in outcome.rows()]


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
