"""The output folder of a prediction study: prediction.csv, calibration.csv, prediction.png and .svg, run.json."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lbopt.report.figures import png_of, svg_of
from lbopt.report.folder import write_csv, write_whole
from lbopt.report.prediction_curves import prediction_figure
from lbopt.report.prediction_tables import calibration_csv, prediction_csv
from lbopt.report.provenance import provenance
from lbopt.studies.prediction import PredictionOutcome

FORMAT = "lbopt-prediction"
FORMAT_VERSION = 1


def write_prediction_folder(outcome: PredictionOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "prediction.csv", prediction_csv(outcome))
        write_csv(target / "calibration.csv", calibration_csv(outcome))
        figure = prediction_figure(outcome)
        (target / "prediction.png").write_bytes(png_of(figure))
        (target / "prediction.svg").write_bytes(svg_of(figure, "prediction"))
        how = provenance(command)
        return {
            "version": FORMAT_VERSION,
            **how,
            "versions": how["versions"] | _learning_library(),
            "configuration": outcome.config.to_dict(),
            "trace": outcome.trace,
            "interrupted": outcome.interrupted,
            "seconds": outcome.seconds,
        }

    write_whole(folder, FORMAT, write)


def _learning_library() -> dict[str, str]:
    try:
        return {"scikit-learn": version("scikit-learn")}
    except PackageNotFoundError:
        return {}
