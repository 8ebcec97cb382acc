"""How a gap study of prefill batches is shown: tables, the frozen batches, the picture."""

from __future__ import annotations

from typing import Any

from lbopt.report.batch_gap_figure import batch_gap_figure
from lbopt.report.batch_gap_tables import batch_gap_csv, batch_gap_tables, batches_csv
from lbopt.report.contents import Contents, Made
from lbopt.report.study_report import StudyReport
from lbopt.studies.batches import BatchesOutcome, JudgedBatch


def batch_gap_contents(outcome: BatchesOutcome, _made: Made) -> Contents:
    """Return batches.csv, gap.csv, batches.jsonl and the picture of gaps."""
    return Contents(
        tables={"batches": batches_csv(outcome), "gap": batch_gap_csv(outcome)},
        records={"batches": map(batch_record, outcome.judged)},
        figures={"gaps": batch_gap_figure(outcome)},
    )


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


REPORT = StudyReport(tables=batch_gap_tables, contents=batch_gap_contents, written="tables, batches and picture")
