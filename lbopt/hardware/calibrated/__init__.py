"""The calibrated law: a roofline whose factors were learnt from measured steps, and what is believed of them."""

from lbopt.hardware.calibrated.features import FAMILIES, StepFeatures, family_of, features_of
from lbopt.hardware.calibrated.law import PARAMETERS, Parameter, StepParts, step_parts
from lbopt.hardware.calibrated.posterior import Posterior, Scatter, calibrate_steps, prior, update

__all__ = [
    "FAMILIES",
    "PARAMETERS",
    "Parameter",
    "Posterior",
    "Scatter",
    "StepFeatures",
    "StepParts",
    "calibrate_steps",
    "family_of",
    "features_of",
    "prior",
    "step_parts",
    "update",
]
