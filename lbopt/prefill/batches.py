"""Ratios over a run with the intervals of 50 batch means (Law and Carson 1979): of things, or of slices of time.

What follows closely on each other is far from independent; the means of long batches nearly are, so their spread gives
a Student interval around the whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.statistics import Interval, batch_ratios, interval_around

NUM_BATCHES = 50

Floats = NDArray[np.float64]
#: A mean, and its interval where there is enough to tell.
Mean = tuple[float, Interval | None]


def batch_mean(numerator: Floats, denominator: Floats, confidence: float) -> Mean:
    """Return sum(numerator) / sum(denominator) over things in order; the interval needs 100 of them."""
    ratios = batch_ratios(numerator, denominator, NUM_BATCHES)
    if ratios is None:
        return slice_mean(numerator, denominator, confidence, enough=False)
    centre = float(numerator.sum() / denominator.sum())
    return centre, interval_around(centre, ratios, confidence)


def slice_mean(numerator: Floats, denominator: Floats, confidence: float, *, enough: bool) -> Mean:
    """Return sum(numerator) / sum(denominator) over slices of time, each its own batch.

    Parameters
    ----------
    numerator, denominator
        float64, (slices,).
    confidence
        Level of the interval, such as 0.95.
    enough
        Whether there are enough slices for an interval.
    """
    if denominator.sum() == 0:
        return float("nan"), None
    centre = float(numerator.sum() / denominator.sum())
    if not enough or (denominator == 0).any():
        return centre, None
    return centre, interval_around(centre, numerator / denominator, confidence)


def busy_seconds(edges: Floats, start: Floats, end: Floats) -> Floats:
    """Return the seconds (B,) that stretches from `start` to `end` (K,) have in the slices between `edges` (B + 1,)."""
    return np.diff(_seconds_before(edges, end) - _seconds_before(edges, start))


def _seconds_before(edges: Floats, times: Floats) -> Floats:
    """Return the sum over `times` of min(edge, time), for each edge."""
    ordered = np.sort(times)
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    below = np.searchsorted(ordered, edges)
    seconds: Floats = total[below] + edges * (times.size - below)
    return seconds
