"""What a cost study found: figures by device and load point."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbopt.hardware.cards import DeviceCard
from lbopt.studies.cost.config import CostConfig
from lbopt.studies.cost.figures import Figure
from lbopt.studies.cost.load_point import LoadPoint

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


@dataclass(frozen=True, slots=True)
class PointCost:
    """What one load point costs on one device: `PRICED`, `SAVED`, and joules a token under every charge of waiting."""

    point: LoadPoint
    figures: dict[str, Figure]
    joules_by_charge: dict[str, Figure]
    energy_saved_by_charge: dict[str, Figure]


@dataclass(frozen=True, slots=True)
class DeviceCost:
    """All load points on one device under one step-time law."""

    card: DeviceCard
    law: str
    devices_per_worker: int
    points: list[PointCost]
    #: what the parts of today's step are bound by: kind -> share of the step, by the cards' values
    bound: dict[str, float]


@dataclass(slots=True)
class WhatIf:
    """The same on another fleet."""

    change: str
    devices: list[DeviceCost]


@dataclass(slots=True)
class CostOutcome:
    """Everything a cost study found; `source` says where the loads are from."""

    config: CostConfig
    source: str = ""
    devices: list[DeviceCost] = field(default_factory=list)
    what_if: list[WhatIf] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
