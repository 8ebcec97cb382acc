"""Calibration: laws of step time or throughput fitted to rows, judged by rows and groups they have not seen."""

from lbopt.hardware.fit.calibration import (
    Calibration,
    Comparison,
    GroupCalibration,
    HeldOut,
    PooledFit,
    calibrate,
    compare,
    compare_two,
    fit_pooled,
    hold_out,
)
from lbopt.hardware.fit.law import LAWS, Law, LawFit, LeastSquares, Observations, Rows, Variable, fit_law, least_squares
from lbopt.hardware.fit.read_rows import read_rows

__all__ = [
    "LAWS",
    "Calibration",
    "Comparison",
    "GroupCalibration",
    "HeldOut",
    "Law",
    "LawFit",
    "LeastSquares",
    "Observations",
    "PooledFit",
    "Rows",
    "Variable",
    "calibrate",
    "compare",
    "compare_two",
    "fit_law",
    "fit_pooled",
    "hold_out",
    "least_squares",
    "read_rows",
]
