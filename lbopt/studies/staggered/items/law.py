"""How long requests wait when a pass takes one second whatever it holds (waiting law of SBS).

Nothing binds but the gate, or a capacity of four requests a pass. With P = load / (load + exp(-load)), the share of
time in which a work-conserving instance is busy, what is known exactly is (`expected`): random split P / 2; spacing
P / (2 N); ticks 1 / (2 N); everything else has no closed form.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.studies.staggered.rows import Row

FLEETS = (1, 2, 4, 8, 10, 16, 32)
#: Requests of an instance in the time of a pass, without a capacity.
LOADS = (0.05, 0.5, 2.0, 8.0)
CAPACITY = 4
#: Load over capacity.
SHARES = (0.5, 0.8, 0.9, 0.95)
POLICIES = {
    "random": "random",
    "round-robin": "round-robin",
    "jsq": "jsq",
    "pooled": "pooled",
    "spacing": "staggered",
    "spacing-bypass": "staggered:idle_bypass=yes",
    "tick": "staggered:timer=tick",
}


def measure(*, instances: int, requests: int, version: str, seed: int) -> list[Row]:
    """Return the wait of every policy at every load on a fleet of this size."""
    rows: list[Row] = []
    for capacity, loads in ((None, LOADS), (CAPACITY, tuple(CAPACITY * share for share in SHARES))):
        for load in loads:
            traffic = PrefillRequests.poisson(load * instances, np.array([1]), seed=seed, count=requests)
            for name, policy in POLICIES.items():
                setting = PrefillSetting(
                    instances, policy=policy, pass_time=PassTime.constant(1.0), requests_per_pass=capacity
                )
                found = simulate_prefill(traffic, setting, seed=seed).metrics()
                keys: dict[str, str | int | float] = {
                    "instances": instances,
                    "capacity": capacity or "none",
                    "load": load,
                    "policy": name,
                }
                values: dict[str, Any] = {
                    "wait": found.wait_mean_seconds,
                    "wait_p99": found.wait_p99_seconds,
                    "at_scheduler": found.wait_at_scheduler_mean_seconds,
                    "on_device": found.wait_on_device_mean_seconds,
                    "expected": None if capacity else expected(name, load, instances),
                }
                rows.append((keys, values))
    return rows


def expected(policy: str, load: float, instances: int) -> float | None:
    """Return the exact mean wait in passes without a capacity, where it is known."""
    busy = load / (load + math.exp(-load))
    return {"random": busy / 2, "spacing": busy / (2 * instances), "tick": 1 / (2 * instances)}.get(policy)
