"""From loads to seconds and joules. Knows nothing of requests, policies or solvers."""

from lbopt.hardware.energy import PowerLaw
from lbopt.hardware.step_time import AffineStepTime

__all__ = ["AffineStepTime", "PowerLaw"]
