"""The prediction study as one of the studies."""

from __future__ import annotations

from lbopt.studies.prediction.config import PredictionConfig
from lbopt.studies.prediction.evaluation import run_prediction
from lbopt.studies.study import Study

HELP = """Train predictors on the first requests of a trace, and judge them on the others.

Every test request is walked through its ages; at each, a predictor says how likely the request ends within the
horizon, and when. With --out, writes prediction.csv, calibration.csv, prediction.png, prediction.svg and run.json.

Example: `lbopt predict azure-like --horizon 20 --predictor survival --predictor learned --out my-prediction`
"""

STUDY = Study(
    name="prediction",
    config=PredictionConfig,
    help=HELP,
    run=run_prediction,
    account=("trace", "interrupted", "seconds"),
    timings=("training_seconds", "microseconds_per_prediction", "microseconds_per_call"),
)
