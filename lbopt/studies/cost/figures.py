"""A figure with its interval: what the cards' values give, and where 90 % of the draws lie.

A constant's value may stand at one of its ends, as a peak rate does, and then the figure that the values give lies at
the edge of what is believed. So the median of the draws is what a table shows; both are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure; all entries are NaN where a constant is not known.

    Parameters
    ----------
    nominal
        What the constants' values give.
    median, low, high
        The median of the draws, and the ends between which 90 % of them lie.
    """

    nominal: float
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: NDArray[np.float64]) -> Figure:
        """Return the figure of draws of which the first was made with the constants' values."""
        low, median, high = np.quantile(draws[1:], LEVELS)
        return cls(float(draws[0]), float(median), float(low), float(high))
