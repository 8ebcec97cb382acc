"""The output folder of a staggering study: claims.csv, a CSV an item, pictures as PNG and SVG, run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.provenance import provenance
from lbopt.report.staggered_figures import staggered_figures
from lbopt.report.staggered_rows import item_rows, question_rows
from lbopt.studies.staggered import StaggeredOutcome

FORMAT = "lbopt-staggered"
FORMAT_VERSION = 1


def write_staggered_folder(outcome: StaggeredOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        files = {"claims": question_rows(outcome)} | {item: item_rows(outcome, item) for item in outcome.rows}
        for name, rows in files.items():
            if rows:  # of some items nothing is printed, and a baseline may keep no limit
                write_csv(target / f"{name}.csv", rows)
        for name, figure in staggered_figures(outcome).items():
            (target / f"{name}.png").write_bytes(png_of(figure))
            (target / f"{name}.svg").write_bytes(svg_of(figure, name))
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "configuration": outcome.config.to_dict(),
            "seeds": {item: len(by_seed) for item, by_seed in outcome.rows.items()},
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
            "seconds": outcome.seconds,
        }

    write_whole(folder, FORMAT, write)
