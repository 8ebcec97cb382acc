"""Watts from loads: the power law and its readings."""

from lbopt.hardware.energy.power_law import PowerLaw
from lbopt.hardware.energy.readings import READINGS, PrintedUtilisation

__all__ = ["READINGS", "PowerLaw", "PrintedUtilisation"]
