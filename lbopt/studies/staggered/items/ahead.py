"""Time to first token with a latency, of rules that send ahead of the end of a pass and of those that wait for it.

The load is a share of the rate at which instances in full passes are saturated; all rules of a class, a load and a seed
get the same requests. Without a latency stands what staggering is worth where batches come in time.
"""

from __future__ import annotations

from lbopt.studies.staggered.places import AHEAD, CLASSES, LOADS, STAGGERED, most_rate
from lbopt.studies.staggered.rows import Key, Row
from lbopt.studies.staggered.trial import Trial, served_row

#: Baselines that are bound on arrival.
BASELINES = ("round-robin", "jsq")
#: Rules that wait for the end of a pass, where there is a latency.
WAITING = ("pooled", "staggered", "staggered-whole")
FEWEST_REQUESTS = 100


def measure(*, fleet: str, latency: float, requests: int, version: str, seed: int) -> list[Row]:
    """Return the service of every rule at every load."""
    one = CLASSES[fleet]
    trial = Trial(one.place, one.instances, requests, seed, one.pass_time, spread=one.spread, latency=latency)
    most = most_rate(one.place, one.pass_time)
    waiting = WAITING if latency > 0 else ("pooled", *STAGGERED)
    rows: list[Row] = []
    for load in LOADS:
        for contender in (*BASELINES, *waiting, *AHEAD):
            keys: dict[str, Key] = {"fleet": fleet, "latency": latency, "load": load, "contender": contender}
            rows.append(served_row(keys, (load * most, trial.run(contender, load * most))))
    return rows
