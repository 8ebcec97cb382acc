"""How a prediction study is shown."""

from __future__ import annotations

from lbopt.report.prediction_curves import draw_calibration, prediction_figure
from lbopt.report.prediction_tables import calibration_csv, prediction_csv, prediction_tables
from lbopt.report.study_report import StudyReport

REPORT = StudyReport(
    tables=prediction_tables,
    csv={"prediction": prediction_csv, "calibration": calibration_csv},
    figures=lambda outcome: {"prediction": prediction_figure(outcome)},
    draw=draw_calibration,
    written="tables and picture",
    packages=("scikit-learn",),
)
