"""Samples of output lengths, what is remembered of every request, and how forecasts are set.

Samples of output lengths in buckets, as the forecasting kernels read them.

Bucket b holds ``outputs[starts[b]:starts[b + 1]]``, ascending. Bucket 0 is that of all requests, to fall back to; where
nothing else is known it is the only one.

What is remembered of every request between two looks at its forecast, and how forecasts are set.
"""

from __future__ import annotations

from typing import NamedTuple

from lbopt.kernels.arrays import Ints


class Samples(NamedTuple):
    """Sorted samples; read only."""

    outputs: Ints  # int64 (S,), decode steps, ascending inside each bucket
    starts: Ints  # int64 (buckets + 1,)
    sums: Ints  # int64 (S + 1,), sums[j] = outputs[:j].sum()


class Seen(NamedTuple):
    """Arrays indexed by request number; -1 = never."""

    at_last: Ints  # int64 (N,), tokens generated when the request was last seen
    at_refresh: Ints  # int64 (N,), tokens generated at its last refresh
    anchored: Ints  # int64 (N,), 1 where that refresh said that it outlives the window


class Gate(NamedTuple):
    """When a forecast is believed."""

    horizon: int  # steps of the window
    least: float  # the chance to end within it from which it counts
    floor: float  # least forecast, tokens
