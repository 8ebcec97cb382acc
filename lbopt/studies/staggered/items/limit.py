"""The highest rate within a limit of mean time to first token, and the utilisation there (SBS, Table 1)."""

from __future__ import annotations

from lbopt.prefill import PassTime
from lbopt.studies.staggered.rows import Row
from lbopt.studies.staggered.trial import Trial, served_row


def measure(
    *, place: str, contender: str, instances: int, requests: int, version: str, seed: int, latency: float = 0.0
) -> list[Row]:
    """Return the rate and the service at it."""
    found = Trial(place, instances, requests, seed, PassTime(), latency=latency).highest_rate(contender)
    return [served_row({"place": place, "contender": contender}, found)]
