"""The output folder of a measurement: card.toml, samples.csv, the picture as PNG and SVG, run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.hardware.measure import Measurement
from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.measure_figure import measure_figure
from lbopt.report.measure_tables import measure_csv
from lbopt.report.provenance import provenance

FORMAT = "lbopt-measure"
FORMAT_VERSION = 1


def write_measure_folder(found: Measurement, card: str | None, folder: Path, command: str) -> None:
    """Write the folder whole or not at all; `card` is the card's text, None where none could be made."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "samples.csv", measure_csv(found))
        if card is not None:
            (target / "card.toml").write_text(card, encoding="utf-8")
        if any(one.law is not None for one in found.attention):
            figure = measure_figure(found)
            (target / "measure.png").write_bytes(png_of(figure))
            (target / "measure.svg").write_bytes(svg_of(figure, "measure"))
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "machine": found.machine,
            "date": found.date,
            "configuration": found.config.to_dict(),
            "interrupted": found.interrupted,
            "notes": found.notes,
            "seconds": found.seconds,
        }

    write_whole(folder, FORMAT, write)
