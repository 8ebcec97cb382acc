"""What a cost study found: figures by device and load point.

A figure with its interval: what the cards' values give, and where 90 % of the draws lie.

A constant's value may stand at one of its ends, as a peak rate does, and then the figure that the values give lies at
the edge of what is believed. So the median of the draws is what a table shows; both are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.cards import DeviceCard
from lbopt.studies.cost.config import CostConfig
from lbopt.studies.cost.load_point import LoadPoint
from lbopt.studies.study import Outcome

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


#: Figures of a load point on a device, and of what it saves against the first point; the unit is in the name.
PRICED = (
    "step_milliseconds",
    "tokens_per_second",
    "wait_share",
    "kilowatts",
    "joules_per_token",
    "wait_energy_share",
    "grams_per_million",
    "dollars_per_million",
)
SAVED = ("time_saved_share", "throughput_gain_share", "energy_saved_share", "dollars_saved_share", "dollars_saved")
#: Of the bill: what the tokens that today's router makes cost with this one, for the devices that the bill is of.
BILLED = (
    "dollars_per_month",
    "dollars_per_year",
    "dollars_saved_per_year",
    "megawatt_hours_per_year",
    "tonnes_per_year",
)


@dataclass(frozen=True, slots=True)
class PointCost:
    """What one load point costs on one device: `PRICED`, `SAVED`, `BILLED`, and joules a token under every charge."""

    point: LoadPoint
    figures: dict[str, Figure]
    joules_by_charge: dict[str, Figure]
    energy_saved_by_charge: dict[str, Figure]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """USD a million tokens of today's router with one constant at its ends (5 and 95 %) and all others nominal."""

    constant: str
    low: float
    high: float

    @property
    def swing(self) -> float:
        """How far the price moves."""
        return abs(self.high - self.low)


@dataclass(frozen=True, slots=True)
class DeviceCost:
    """All load points on one device under one step-time law."""

    card: DeviceCard
    law: str
    devices_per_worker: int
    points: list[PointCost]
    #: devices that the bill is of
    billed: int
    #: parts of today's step: part -> share of the step, by the nominal values
    bound: dict[str, float]
    #: what today's price a million tokens hangs on, the largest first
    sensitivities: list[Sensitivity] = field(default_factory=list)


@dataclass(slots=True)
class WhatIf:
    """The same on another fleet."""

    change: str
    devices: list[DeviceCost]


@dataclass(slots=True, repr=False)
class CostOutcome(Outcome):
    """Everything a cost study found; `source` says where the loads are from."""

    config: CostConfig
    source: str = ""
    devices: list[DeviceCost] = field(default_factory=list)
    what_if: list[WhatIf] = field(default_factory=list)
