"""Seconds of a decode step from what its workers hold and run: laws behind one protocol."""

from lbopt.hardware.step_time.affine import AffineStepTime
from lbopt.hardware.step_time.barrier_form import BarrierForm
from lbopt.hardware.step_time.calibrated_law import CalibratedStepTime
from lbopt.hardware.step_time.deployment import Deployment
from lbopt.hardware.step_time.experts import ExpertStepTime, expected_active
from lbopt.hardware.step_time.law import DraftingStepTime, ExplainedStepTime, StepTime, StepTimeByUse
from lbopt.hardware.step_time.mean_term import MeanTermStepTime
from lbopt.hardware.step_time.roofline import RooflineStepTime
from lbopt.hardware.step_time.roofline_breakdown import KINDS, Breakdown, kinds_of
from lbopt.hardware.step_time.roofline_terms import roofline_terms_at
from lbopt.hardware.step_time.step_work import Formats, StepWork, step_work
from lbopt.hardware.step_time.table import STEP_TIMES, make_step_time

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
