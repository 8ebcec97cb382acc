"""How does the imbalance grow with slots and workers? Rules over a grid of fleets, and the exponents fitted to them."""

from lbopt.studies.scaling.study import Exponents, ScalingCell, ScalingConfig, ScalingOutcome, run_scaling

__all__ = ["Exponents", "ScalingCell", "ScalingConfig", "ScalingOutcome", "run_scaling"]
