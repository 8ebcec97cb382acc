"""Time to first token against the number of instances, at a share of the baseline's peak on a fleet of that size."""

from __future__ import annotations

from collections.abc import Sequence

from lbopt.studies.staggered.items import load
from lbopt.studies.staggered.places import LATE
from lbopt.studies.staggered.rows import Row

FLEETS = (1, 2, 4, 8, 16, 32)
LOAD = 0.8


def measure(
    *,
    place: str,
    against: str,
    instances: int,
    requests: int,
    version: str,
    seed: int,
    rules: Sequence[str] = LATE,
) -> list[Row]:
    """Return the service of the baseline and of every rule that holds back."""
    rows = load.measure(
        place=place,
        against=against,
        instances=instances,
        requests=requests,
        loads=[LOAD],
        version=version,
        seed=seed,
        rules=rules,
    )
    return [({"instances": instances} | keys, values) for keys, values in rows]
