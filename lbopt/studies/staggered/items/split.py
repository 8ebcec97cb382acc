"""What of the gain is late binding, what the interval, and what the balance of units: every binding with every rule.

At a share of the peak of round-robin, the plainest of the baselines.
"""

from __future__ import annotations

from lbopt.prefill import PassTime, PrefillSetting, simulate_prefill
from lbopt.studies.staggered.places import UNITS, WINDOW, values_of
from lbopt.studies.staggered.rows import Key, Row
from lbopt.studies.staggered.trial import Trial

BASELINE, LOAD = "round-robin", 0.8
BINDINGS = {
    "on arrival": "round-robin",
    "late": "pooled",
    "late, interval": f"staggered:window={WINDOW},target=free",
    "late, interval, bypass": f"staggered:window={WINDOW},target=free,idle_bypass=yes",
    "late, interval, ring": f"staggered:window={WINDOW}",
}
ALLOCATIONS = ("round-robin", "least-loaded", "longest-first", "pbaa", "pbaa:whole=yes")


def measure(*, place: str, instances: int, requests: int, version: str, seed: int) -> list[Row]:
    """Return the service of every binding with every allocation that goes with it."""
    trial = Trial(place, instances, requests, seed, PassTime())
    peak = trial.highest_rate(BASELINE)
    if peak is None:
        return []
    rate = LOAD * peak[0]
    traffic = trial.requests(rate)
    rows: list[Row] = []
    for binding, policy in BINDINGS.items():
        for allocation in ALLOCATIONS:
            if binding == "on arrival" and allocation.startswith("pbaa"):  # it holds requests back
                continue
            setting = PrefillSetting(instances, UNITS, policy, allocation, PassTime(), chunk_tokens=trial.place.chunk)
            found = simulate_prefill(traffic, setting, seed=seed).metrics()
            keys: dict[str, Key] = {"place": place, "binding": binding, "allocation": allocation}
            rows.append((keys, {"rate": rate} | values_of(found)))
    return rows
