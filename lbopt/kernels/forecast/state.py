"""What is remembered of every request between two looks at its forecast, and how forecasts are set."""

from __future__ import annotations

from typing import NamedTuple

from lbopt.kernels.arrays import Ints


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
