"""Naive twins: slow, loop-only reference implementations written from the definitions alone.

They use the standard library only and import nothing from lbopt, so that they can judge its compiled kernels.
"""

from naive.br_h import br_h, br_h_trace, horizon_score, peak, project, weights
from naive.forecasting import RequestForecast, ends_within
from naive.objective import brute_force, imbalance, objective, spread
from naive.rules import (
    HELD,
    IMMEDIATE_RULES,
    POOLED_RULES,
    auto,
    best_single,
    best_subset,
    bind,
    br_0,
    br_0_bypass,
    br_0_trace,
    fcfs,
    iqr,
    iqr_threshold,
    jsq,
    jsq_load,
    max_min,
    place,
    power_of_two,
    random_rule,
    round_robin,
    score,
    vllm,
)
from naive.sight import Telemetry
from naive.simulation import Metrics, Trajectory, metrics, simulate

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
