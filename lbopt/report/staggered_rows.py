"""The rows of a staggering study's files, with full precision: the statements, and every item as it was measured."""

from __future__ import annotations

import math
from typing import Any

from lbopt.report.staggered_questions import answered, verdict_said
from lbopt.studies.staggered import StaggeredOutcome


def question_rows(outcome: StaggeredOutcome) -> list[dict[str, Any]]:
    """Return a row a printed statement; an open end of its range is empty."""
    found = []
    for asked, judged in answered(outcome):
        ours = judged.ours if judged else None
        found.append(
            {
                "item": asked.item,
                "quantity": asked.quantity,
                "unit": asked.printed.unit,
                "rule": asked.rule,
                "against": asked.against,
                "printed": asked.printed.text,
                "printed_low": None if math.isinf(asked.printed.low) else asked.printed.low,
                "printed_high": None if math.isinf(asked.printed.high) else asked.printed.high,
                "ours": ours and ours.mean,
                "low": ours and ours.low,
                "high": ours and ours.high,
                "seeds": len(judged.values) if judged else 0,
                "verdict": verdict_said(judged),
            }
        )
    return found


def item_rows(outcome: StaggeredOutcome, item: str) -> list[dict[str, Any]]:
    """Return the rows of an item: its keys, then of each quantity mean, low, high and the seeds that have it.

    Times are in s, rates in requests/s of an instance where the item says nothing else.
    """
    averaged = outcome.averaged(item)
    keys = dict.fromkeys(key for row in averaged for key in row.keys)
    quantities = dict.fromkeys(of for row in averaged for of in row.values)
    found = []
    for row in averaged:
        cells: dict[str, Any] = {key: row.keys.get(key) for key in keys}
        for of in quantities:
            value = row.values.get(of)
            cells |= {
                f"{of}_mean": value and value.mean,
                f"{of}_low": value and value.low,
                f"{of}_high": value and value.high,
                f"{of}_seeds": row.seeds.get(of, 0),
            }
        found.append(cells)
    return found
