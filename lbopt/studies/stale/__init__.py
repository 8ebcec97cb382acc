"""What does old sight cost? Rules on a trace, by the age of what the router sees, beside what the law forecasts."""

from lbopt.studies.stale.config import StaleConfig
from lbopt.studies.stale.outcome import StaleCell, StaleOutcome
from lbopt.studies.stale.study import run_stale

__all__ = ["StaleCell", "StaleConfig", "StaleOutcome", "run_stale"]
