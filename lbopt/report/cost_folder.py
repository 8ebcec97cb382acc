"""The output folder of a cost study: cost.csv, the picture as PNG and SVG, run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.report.cost_figure import cost_figure
from lbopt.report.cost_tables import cost_csv
from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.provenance import provenance
from lbopt.studies.cost import CostOutcome

FORMAT = "lbopt-cost"
FORMAT_VERSION = 1


def write_cost_folder(outcome: CostOutcome, source: str, folder: Path, command: str) -> None:
    """Write the folder whole or not at all; `source` says where the loads are from."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "cost.csv", cost_csv(outcome))
        figure = cost_figure(outcome)
        (target / "cost.png").write_bytes(png_of(figure))
        (target / "cost.svg").write_bytes(svg_of(figure, "cost"))
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "configuration": outcome.config.to_dict(),
            "source": source,
            "cards": {device.card.name: device.card.to_dict() for device in outcome.devices},
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
        }

    write_whole(folder, FORMAT, write)
