"""What does stale state cost? Rules on a trace, by the age of what the router sees, beside what the law forecasts."""

from lbopt.studies.stale.study import StaleCell, StaleConfig, StaleOutcome, run_stale

__all__ = ["StaleCell", "StaleConfig", "StaleOutcome", "run_stale"]
