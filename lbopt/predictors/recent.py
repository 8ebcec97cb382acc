"""What ended lately: an exponentially weighted mean of outputs, and rolling statistics of outputs and prompts.

The same five numbers in two ways: `Recent` keeps them up to date as requests end, `recent_before` returns for a whole
list of requests what each of them would have seen, the ones before it having ended.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Requests in a rolling statistic.
WINDOW = 64
#: Weight of the latest output in the exponentially weighted mean.
SMOOTHING = 0.05

NAMES = ("smoothed output", "mean output", "largest output", "mean prompt", "largest prompt")


class Recent:
    """The statistics of the requests that ended last; NaN while none has."""

    def __init__(self) -> None:
        self._smoothed = np.nan
        self._outputs: deque[int] = deque(maxlen=WINDOW)
        self._prompts: deque[int] = deque(maxlen=WINDOW)

    def add(self, prompt: Ints, output: Ints) -> None:
        """Take in requests that have ended, oldest first: tokens, int64 (n,) each."""
        for value in output.tolist():
            self._smoothed = value if np.isnan(self._smoothed) else _smooth(self._smoothed, value)
        self._outputs.extend(output[-WINDOW:].tolist())
        self._prompts.extend(prompt[-WINDOW:].tolist())

    def features(self) -> Floats:
        """Return the statistics in the order of `NAMES`, float64 (5,)."""
        if not self._outputs:
            return np.full(len(NAMES), np.nan)
        outputs, prompts = np.array(self._outputs), np.array(self._prompts)
        return np.array([self._smoothed, outputs.mean(), outputs.max(), prompts.mean(), prompts.max()])


def recent_before(prompt: Ints, output: Ints) -> Floats:
    """Return in row i the statistics after the first i requests, float64 (n + 1, 5); row 0 is NaN."""
    table = np.full((output.size + 1, len(NAMES)), np.nan)
    smoothed = np.nan
    for i, value in enumerate(output.tolist(), start=1):
        smoothed = value if i == 1 else _smooth(smoothed, value)
        table[i, 0] = smoothed
    for column, values in ((1, output), (3, prompt)):
        sums = np.concatenate([[0], np.cumsum(values)])
        ends = np.arange(1, values.size + 1)
        begins = np.maximum(0, ends - WINDOW)
        table[1:, column] = (sums[ends] - sums[begins]) / (ends - begins)
        padded = np.concatenate([np.zeros(WINDOW - 1, dtype=np.int64), values])  # tokens are never negative
        table[1:, column + 1] = np.lib.stride_tricks.sliding_window_view(padded, WINDOW).max(axis=1)
    return table


def _smooth(before: float, value: float) -> float:
    return before + SMOOTHING * (value - before)
