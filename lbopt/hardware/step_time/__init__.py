"""Seconds of a decode step from what its workers hold and run: laws behind one protocol."""

from lbopt.hardware.step_time.affine import AffineStepTime
from lbopt.hardware.step_time.barrier_form import BarrierForm
from lbopt.hardware.step_time.law import StepTime
from lbopt.hardware.step_time.mean_term import MeanTermStepTime
from lbopt.hardware.step_time.table import STEP_TIMES, make_step_time

__all__ = ["STEP_TIMES", "AffineStepTime", "BarrierForm", "MeanTermStepTime", "StepTime", "make_step_time"]
