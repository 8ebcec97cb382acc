"""How a prediction study is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.prediction_curves import prediction_figure
from lbopt.report.prediction_tables import calibration_csv, prediction_csv, prediction_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.prediction import PredictionOutcome


def prediction_contents(outcome: PredictionOutcome, _made: Made) -> Contents:
    """Return prediction.csv, calibration.csv and the picture."""
    return Contents(
        tables={"prediction": prediction_csv(outcome), "calibration": calibration_csv(outcome)},
        figures={"prediction": prediction_figure(outcome)},
    )


REPORT = StudyReport(
    tables=prediction_tables,
    contents=prediction_contents,
    written="tables and picture",
    packages=("scikit-learn",),
)
