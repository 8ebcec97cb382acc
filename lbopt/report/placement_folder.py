"""The output folder of a placement study: placement.csv, the picture of gaps as PNG and SVG, run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.placement_figure import gap_figure
from lbopt.report.placement_tables import placement_csv
from lbopt.report.provenance import provenance
from lbopt.studies.placement import PlacementOutcome

FORMAT = "lbopt-placement"
FORMAT_VERSION = 1


def write_placement_folder(outcome: PlacementOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "placement.csv", placement_csv(outcome))
        figure = gap_figure(outcome)
        (target / "gaps.png").write_bytes(png_of(figure))
        (target / "gaps.svg").write_bytes(svg_of(figure, "gaps"))
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "configuration": outcome.config.to_dict(),
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
            "seconds": outcome.seconds,
        }

    write_whole(folder, FORMAT, write)
