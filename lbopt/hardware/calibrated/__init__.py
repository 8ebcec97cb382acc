"""The calibrated law: a roofline whose factors were learnt from measured steps, and what is believed of them."""

from lbopt.hardware.calibrated.features import FAMILIES, StepFeatures, family_of, features_of
from lbopt.hardware.calibrated.hold_out import Forecast, forecast_source, leave_sources_out
from lbopt.hardware.calibrated.law import PARAMETERS, Parameter, StepParts, step_parts
from lbopt.hardware.calibrated.posterior import Posterior, Scatter, calibrate_steps, prior, update
from lbopt.hardware.calibrated.shipped import shipped_posterior, steps_to_learn_from

__all__ = [
    "FAMILIES",
    "PARAMETERS",
    "Forecast",
    "Parameter",
    "Posterior",
    "Scatter",
    "StepFeatures",
    "StepParts",
    "calibrate_steps",
    "family_of",
    "features_of",
    "forecast_source",
    "leave_sources_out",
    "prior",
    "shipped_posterior",
    "step_parts",
    "steps_to_learn_from",
    "update",
]
