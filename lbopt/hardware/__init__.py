"""From loads to seconds, joules and money. Knows nothing of requests, policies or solvers."""

from lbopt.hardware.energy import PowerLaw
from lbopt.hardware.quantity import Quantity
from lbopt.hardware.step_time import AffineStepTime, BarrierForm, MeanTermStepTime, StepTime, make_step_time

__all__ = ["AffineStepTime", "BarrierForm", "MeanTermStepTime", "PowerLaw", "Quantity", "StepTime", "make_step_time"]
