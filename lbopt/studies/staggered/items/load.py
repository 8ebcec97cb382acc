"""Time to first token against load: of a baseline bound on arrival, and of rules that hold requests back.

The load is a share of the baseline's own peak, the highest rate that it serves within the limit of its place; all rules
get the same requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbopt.prefill import PassTime
from lbopt.studies.staggered.places import LATE
from lbopt.studies.staggered.rows import Key, Row
from lbopt.studies.staggered.trial import Trial, served_row

LOADS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def measure(
    *,
    place: str,
    against: str,
    instances: int,
    requests: int,
    loads: list[float],
    version: str,
    seed: int,
    rules: Sequence[str] = LATE,
) -> list[Row]:
    """Return the service of the baseline and of every rule that holds back, at every load."""
    trial = Trial(place, instances, requests, seed, PassTime())
    peak = trial.highest_rate(against)
    if peak is None:
        return []
    rows: list[Row] = []
    for load in loads:
        for contender in (against, *rules):
            keys: dict[str, Key] = {"place": place, "against": against, "load": load, "contender": contender}
            rows.append(served_row(keys, (load * peak[0], trial.run(contender, load * peak[0]))))
    return rows
