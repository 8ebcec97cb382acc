"""Naive twins: slow, loop-only reference implementations written from the definitions alone.

They use the standard library only and import nothing from lbopt, so that they can judge its compiled kernels.
"""

from naive.br_0 import best_single, best_subset, br_0, br_0_bypass, br_0_trace, score
from naive.br_h import br_h, br_h_trace, horizon_score, peak, project, weights
from naive.figures import Metrics, metrics
from naive.forecasting import RequestForecast, ends_within
from naive.iqr import iqr, iqr_threshold
from naive.objective import brute_force, imbalance, objective, spread
from naive.pooled_rules import auto, fcfs, jsq, jsq_load, max_min, power_of_two, random_rule, round_robin, vllm
from naive.rules import HELD, IMMEDIATE_RULES, POOLED_RULES, bind, place
from naive.sight import Telemetry
from naive.simulation import Trajectory, simulate

__all__ = [
    "HELD",
    "IMMEDIATE_RULES",
    "POOLED_RULES",
    "Metrics",
    "RequestForecast",
    "Telemetry",
    "Trajectory",
    "auto",
    "best_single",
    "best_subset",
    "bind",
    "br_0",
    "br_0_bypass",
    "br_0_trace",
    "br_h",
    "br_h_trace",
    "brute_force",
    "ends_within",
    "fcfs",
    "horizon_score",
    "imbalance",
    "iqr",
    "iqr_threshold",
    "jsq",
    "jsq_load",
    "max_min",
    "metrics",
    "objective",
    "peak",
    "place",
    "power_of_two",
    "project",
    "random_rule",
    "round_robin",
    "score",
    "simulate",
    "spread",
    "vllm",
    "weights",
]
