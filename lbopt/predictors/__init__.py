"""What may be known of how long a request will run: predictors, and the forecasts that policies see.

A predictor is fitted on training requests (the oracle reads the truth) and says for a running request the chance p to
end within H more steps and the mean mu if it does. A `Forecaster` makes of it the forecast of every running request,
refreshed now and then; a policy sees the forecast, never the predictor.
"""

from lbopt.predictors.forecaster import Forecaster
from lbopt.predictors.predictor import Forecast, Foresight, LearningPredictor, Predictor, SamplePredictor
from lbopt.predictors.rules import walk
from lbopt.predictors.table import PREDICTORS, check_predictor, make_predictor, needs_training

__all__ = [
    "PREDICTORS",
    "Forecast",
    "Forecaster",
    "Foresight",
    "LearningPredictor",
    "Predictor",
    "SamplePredictor",
    "check_predictor",
    "make_predictor",
    "needs_training",
    "walk",
]


def __dir__() -> list[str]:
    return sorted(__all__)
