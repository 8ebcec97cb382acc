"""The prediction study: what do predictors know of the remaining length of a running request?

`run_prediction` trains each predictor on the first requests of a trace and judges it on the others, at every age that
they go through. It does not route anything: whether a better forecast makes a better router is another question.
"""

from lbopt.studies.prediction.evaluation import (
    PredictionConfig,
    PredictionOutcome,
    PredictorScore,
    run_prediction,
)
from lbopt.studies.prediction.metrics import CalibrationBin

__all__ = ["CalibrationBin", "PredictionConfig", "PredictionOutcome", "PredictorScore", "run_prediction"]
