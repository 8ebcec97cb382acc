"""The output folder of a gap study of prefill batches: tables, the frozen batches, the picture, run.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lbopt.report.batch_gap_figure import batch_gap_figure
from lbopt.report.batch_gap_tables import batch_gap_csv, batches_csv
from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import MARK, write_csv, write_whole
from lbopt.report.gap_folder import read_account
from lbopt.report.provenance import provenance
from lbopt.studies.batches import BatchesConfig, BatchesOutcome, JudgedBatch

FORMAT = "lbopt-batch-gap"
FORMAT_VERSION = 1


def write_batch_gap_folder(outcome: BatchesOutcome, folder: Path, command: str) -> None:
    """Write batches.csv, gap.csv, batches.jsonl, gaps.png, gaps.svg and run.json, whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "batches.csv", batches_csv(outcome))
        write_csv(target / "gap.csv", batch_gap_csv(outcome))
        lines = "".join(f"{json.dumps(batch_record(one))}\n" for one in outcome.judged)
        (target / "batches.jsonl").write_text(lines, encoding="utf-8")
        figure = batch_gap_figure(outcome)
        (target / "gaps.png").write_bytes(png_of(figure))
        (target / "gaps.svg").write_bytes(svg_of(figure, "gaps"))
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "configuration": outcome.config.to_dict(),
            "trace": outcome.trace,
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
            "seconds": outcome.seconds,
        }

    write_whole(folder, FORMAT, write)


def read_batch_run(folder: Path) -> tuple[BatchesConfig, dict[str, Any]]:
    """Return the configuration of an output folder, and all of its run.json."""
    data = read_account(folder, FORMAT, FORMAT_VERSION)
    return BatchesConfig.from_dict(data["configuration"], source=str(folder / MARK)), data


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
