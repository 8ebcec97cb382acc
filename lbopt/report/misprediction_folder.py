"""The output folder of a misprediction study: misprediction.csv, long_runs.csv, steps.jsonl, the picture, run.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib import rc_context

from lbopt.report.folder import write_csv, write_whole
from lbopt.report.gap_folder import step_record
from lbopt.report.misprediction_curves import misprediction_figure
from lbopt.report.misprediction_tables import misprediction_csv, misprediction_long_run_csv
from lbopt.report.provenance import provenance
from lbopt.studies.misprediction import MispredictionOutcome

FORMAT = "lbopt-misprediction"
FORMAT_VERSION = 1


def write_misprediction_folder(outcome: MispredictionOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "misprediction.csv", misprediction_csv(outcome))
        if outcome.long_runs:
            write_csv(target / "long_runs.csv", misprediction_long_run_csv(outcome))
        lines = [json.dumps(step_record(solved)) for solved in outcome.solved]
        (target / "steps.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        figure = misprediction_figure(outcome)
        # no date and no version inside, so that equal data give equal bytes
        figure.savefig(target / "misprediction.png", dpi=130, metadata={"Software": None})
        with rc_context({"svg.hashsalt": "misprediction"}):
            figure.savefig(target / "misprediction.svg", metadata={"Date": None, "Creator": None})
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
