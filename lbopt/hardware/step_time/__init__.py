"""Seconds of a decode step from what its workers hold and run: laws behind one protocol."""

from lbopt.hardware.step_time.barrier_form import (
    AffineStepTime,
    BarrierForm,
    ExpertStepTime,
    MeanTermStepTime,
    expected_active,
)
from lbopt.hardware.step_time.calibrated_law import CalibratedStepTime
from lbopt.hardware.step_time.roofline import KINDS, Breakdown, RooflineStepTime, kinds_of, roofline_terms_at
from lbopt.hardware.step_time.step_work import Deployment, Formats, StepWork, step_work
from lbopt.hardware.step_time.table import (
    STEP_TIMES,
    DraftingStepTime,
    ExplainedStepTime,
    StepTime,
    StepTimeByUse,
    make_step_time,
)

__all__ = [
    "KINDS",
    "STEP_TIMES",
    "AffineStepTime",
    "BarrierForm",
    "Breakdown",
    "CalibratedStepTime",
    "Deployment",
    "DraftingStepTime",
    "ExpertStepTime",
    "ExplainedStepTime",
    "Formats",
    "MeanTermStepTime",
    "RooflineStepTime",
    "StepTime",
    "StepTimeByUse",
    "StepWork",
    "expected_active",
    "kinds_of",
    "make_step_time",
    "roofline_terms_at",
    "step_work",
]
