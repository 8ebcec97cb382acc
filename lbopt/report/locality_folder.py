"""The output folder of a locality study: claims.csv, runs.csv, signatures.csv, pictures as PNG and SVG, run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.locality_figures import locality_figures
from lbopt.report.locality_rows import question_rows, run_rows, signature_rows
from lbopt.report.provenance import provenance
from lbopt.studies.locality import LocalityOutcome

FORMAT = "lbopt-locality"
FORMAT_VERSION = 1


def write_locality_folder(outcome: LocalityOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        files = {"claims": question_rows(outcome), "runs": run_rows(outcome), "signatures": signature_rows(outcome)}
        for name, rows in files.items():
            if rows:  # nothing is printed of the barrier alone, and signatures are an item of their own
                write_csv(target / f"{name}.csv", rows)
        for name, figure in locality_figures(outcome).items():
            (target / f"{name}.png").write_bytes(png_of(figure))
            (target / f"{name}.svg").write_bytes(svg_of(figure, name))
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "configuration": outcome.config.to_dict(),
            "worlds": {workload: len(answers) for workload, answers in outcome.answers.items()},
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
            "seconds": outcome.seconds,
        }

    write_whole(folder, FORMAT, write)
