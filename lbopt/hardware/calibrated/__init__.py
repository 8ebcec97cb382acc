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
    Forecast,
    Posterior,
    Scatter,
    calibrate_steps,
    forecast_source,
    leave_sources_out,
    prior,
    shipped_posterior,
    steps_to_learn_from,
    update,
)

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
