"""How a gap study of prefill batches is shown: tables, the frozen batches, the picture."""

from __future__ import annotations

from typing import Any

from lbopt.report.batch_gap_figure import batch_gap_figure, draw_batch_gaps
from lbopt.report.batch_gap_tables import batch_gap_csv, batch_gap_tables, batches_csv
from lbopt.report.study_report import StudyReport
from lbopt.studies.batches import JudgedBatch


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
