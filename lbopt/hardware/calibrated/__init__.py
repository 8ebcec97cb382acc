"""The calibrated law: a roofline whose factors were learnt from measured steps, and what is believed of them."""

from lbopt.hardware.calibrated.law import (
    FAMILIES,
    PARAMETERS,
    Parameter,
    StepFeatures,
    StepParts,
    family_of,
    features_of,
    step_parts,
)
from lbopt.hardware.calibrated.posterior import (
    Posterior,
    Scatter,
    prior,
    shipped_posterior,
    update,
)

__all__ = [
    "FAMILIES",
    "PARAMETERS",
    "Parameter",
    "Posterior",
    "Scatter",
    "StepFeatures",
    "StepParts",
    "family_of",
    "features_of",
    "prior",
    "shipped_posterior",
    "step_parts",
    "update",
]
