"""The highest rate within the limit when it takes a moment from the scheduler to an instance.

An instance with work left over starts its next pass by itself, the moment the last one ends. A batch that leaves the
scheduler at that moment comes too late for that pass and waits on the device; by the next end it is what is left over,
so that the batch after it is late as well. Headroom is a chunk less what the device then has, and counts what the pass
that starts computes: two passes that follow each other share one chunk and what exceeds it, and instances that never
idle stay little more than half full, full passes and light ones in turn. Without latency batches come in time, which
no deployment can have. Rules that send ahead of the end of a pass give the batch the next chunk whole
(`contenders.AHEAD`).
"""

from __future__ import annotations

from lbopt.studies.staggered.items import limit
from lbopt.studies.staggered.rows import Row

#: s.
LATENCIES = (0.0, 0.001, 0.02)


def measure(
    *, latency: float, place: str, contender: str, instances: int, requests: int, version: str, seed: int
) -> list[Row]:
    """Return the rate and the service at it."""
    rows = limit.measure(
        place=place,
        contender=contender,
        instances=instances,
        requests=requests,
        version=version,
        seed=seed,
        latency=latency,
    )
    return [({"place": place, "latency": latency, "contender": contender}, values) for _, values in rows]
