"""A figure with its interval: what the cards' values give, and where 90 % of the draws lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS = (0.05, 0.95)


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its ends; all three are NaN where a constant is not known."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: NDArray[np.float64]) -> Figure:
        """Return the figure of draws of which the first was made with the cards' values."""
        draws = np.atleast_1d(draws)
        low, high = np.quantile(draws[1:], LEVELS) if draws.size > 1 else (draws[0], draws[0])
        return cls(float(draws[0]), float(low), float(high))
