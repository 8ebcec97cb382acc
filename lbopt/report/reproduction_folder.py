"""The output folder of the reproductions: reproduction.csv, dilution.png and .svg where that item was run, run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.provenance import provenance
from lbopt.report.reproduction_figure import dilution_figure
from lbopt.report.reproduction_tables import reproduction_csv
from lbopt.studies.reproduction import ReproductionOutcome

FORMAT = "lbopt-reproduction"
FORMAT_VERSION = 1


def write_reproduction_folder(outcome: ReproductionOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "reproduction.csv", reproduction_csv(outcome))
        figure = dilution_figure(outcome)
        if figure is not None:
            (target / "dilution.png").write_bytes(png_of(figure))
            (target / "dilution.svg").write_bytes(svg_of(figure, "dilution"))
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "configuration": outcome.config.to_dict(),
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
            "seconds": outcome.seconds,
        }

    write_whole(folder, FORMAT, write)
