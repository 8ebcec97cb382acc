"""The prediction study as one of the studies."""

from __future__ import annotations

from lbopt.studies.prediction.config import PredictionConfig
from lbopt.studies.prediction.evaluation import run_prediction
from lbopt.studies.study import Study

STUDY = Study(
    name="prediction",
    format="lbopt-prediction",
    config=PredictionConfig,
    run=run_prediction,
    tables=("prediction", "calibration"),
    figures=("prediction",),
    account=("trace", "interrupted", "seconds"),
    has_results=lambda outcome: bool(outcome.scores),
    timings=("training_seconds", "microseconds_per_prediction", "microseconds_per_call"),
)
