"""The misprediction study: what does a wrong forecast cost a rule that looks ahead?

`run_misprediction` gives each rule the exact forecast and worse and worse ones (`forecasts`), lets it decide the same
frozen states and run the same requests with each, and puts the rule that does not look at all beside them.
"""

from lbopt.studies.misprediction.forecasts import Case, ForecastVariant, MispredictionConfig
from lbopt.studies.misprediction.study import MispredictionOutcome, run_misprediction

__all__ = ["Case", "ForecastVariant", "MispredictionConfig", "MispredictionOutcome", "run_misprediction"]
