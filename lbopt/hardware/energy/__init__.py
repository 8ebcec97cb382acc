"""Watts from loads: the power law and its readings."""

from lbopt.hardware.energy.power_law import PowerLaw

__all__ = ["PowerLaw"]
