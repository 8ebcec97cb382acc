"""What imbalance costs: milliseconds, tokens a second, joules and money of load points on devices."""

from lbopt.studies.cost.config import CostConfig
from lbopt.studies.cost.load_point import LoadPoint
from lbopt.studies.cost.outcome import CostOutcome, DeviceCost, PointCost, WhatIf
from lbopt.studies.cost.study import cost_of_points

__all__ = ["CostConfig", "CostOutcome", "DeviceCost", "LoadPoint", "PointCost", "WhatIf", "cost_of_points"]
