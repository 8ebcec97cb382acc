"""The output folder of a scaling study: scaling.csv, exponents.csv, pictures as PNG and SVG, run.json."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.provenance import provenance
from lbopt.report.scaling_curves import imbalance_figure, law_figure, onset_figure
from lbopt.report.scaling_tables import exponents_csv, scaling_csv
from lbopt.studies.scaling import ScalingOutcome
from lbopt.studies.scaling.config import REPLETE

FORMAT = "lbopt-scaling"
FORMAT_VERSION = 1


def write_scaling_folder(outcome: ScalingOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "scaling.csv", scaling_csv(outcome))
        write_csv(target / "exponents.csv", exponents_csv(outcome))
        for name, figure in _figures(outcome).items():
            (target / f"{name}.png").write_bytes(png_of(figure))
            (target / f"{name}.svg").write_bytes(svg_of(figure, name))
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "configuration": outcome.config.to_dict(),
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
            "seconds": outcome.seconds,
        }

    write_whole(folder, FORMAT, write)


def _figures(outcome: ScalingOutcome) -> dict[str, Figure]:
    """Return the pictures by their names; those of the exact rule only where it took part."""
    found = {"imbalance": imbalance_figure(outcome)}
    exact = [policy for policy in outcome.config.policies if policy == REPLETE or policy.startswith("bf-io")]
    for policy in exact:
        if outcome.of(policy):
            name = re.sub(r"[^\w.-]+", "-", policy)  # two variants of a rule have two pictures
            found[f"onset-{name}"] = onset_figure(outcome, policy)
            found[f"law-{name}"] = law_figure(outcome, policy)
    return found
