"""What imbalance costs: milliseconds, tokens a second, joules and money of load points on devices."""

from lbopt.studies.cost.config import CostConfig
from lbopt.studies.cost.load_point import LEVEL, NEXT_STEP, LoadPoint
from lbopt.studies.cost.outcome import CostOutcome, DeviceCost, PointCost, Sensitivity, WhatIf
from lbopt.studies.cost.study import cost_of_points, run_cost
from lbopt.studies.cost.what_if import Rerun, parse_change

__all__ = [
    "LEVEL",
    "NEXT_STEP",
    "CostConfig",
    "CostOutcome",
    "DeviceCost",
    "LoadPoint",
    "PointCost",
    "Rerun",
    "Sensitivity",
    "WhatIf",
    "cost_of_points",
    "parse_change",
    "run_cost",
]
