"""Samples of output lengths in buckets, as the forecasting kernels read them.

Bucket b holds ``outputs[starts[b]:starts[b + 1]]``, ascending. Bucket 0 is everybody's, the one to fall back to; where
nothing else is known it is the only one.
"""

from __future__ import annotations

from typing import NamedTuple

from lbopt.kernels.arrays import Ints


class Samples(NamedTuple):
    """Sorted samples; read only."""

    outputs: Ints  # int64 (S,), decode steps, ascending inside each bucket
    starts: Ints  # int64 (buckets + 1,)
    sums: Ints  # int64 (S + 1,), sums[j] = outputs[:j].sum()
