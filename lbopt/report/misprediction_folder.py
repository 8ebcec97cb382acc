"""The output folder of a misprediction study: misprediction.csv, long_runs.csv, steps.jsonl, the picture, run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.gap_folder import write_states
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
        write_states(target / "steps.jsonl", outcome.solved)
        figure = misprediction_figure(outcome)
        (target / "misprediction.png").write_bytes(png_of(figure))
        (target / "misprediction.svg").write_bytes(svg_of(figure, "misprediction"))
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
