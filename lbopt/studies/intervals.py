"""Means over seeds with Student intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class MeanOverSeeds:
    """A mean, and its 95 % interval where there are at least two seeds."""

    mean: float
    low: float | None
    high: float | None


def over_seeds(values: Sequence[float]) -> MeanOverSeeds:
    """Return the mean of one value per seed with its Student interval."""
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if array.size < 2:
        return MeanOverSeeds(mean, None, None)
    from scipy.special import stdtrit

    half = float(stdtrit(array.size - 1, 0.5 + CONFIDENCE / 2) * array.std(ddof=1) / array.size**0.5)
    return MeanOverSeeds(mean, mean - half, mean + half)
