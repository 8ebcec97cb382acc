"""What a decode step costs: time, tokens, joules, carbon and money, from the load of the heaviest and the mean worker.

A worker that holds L tokens waits per_token * (max L - L) seconds of every step: what is fixed, what all do together
and what depends on the number of running requests is not waiting. So the mean share of a step that is waited away is

    wait = per_token * (max L - mean L) / seconds,

and a worker draws, on average,

    watts = idle + (busy - idle) * (1 - wait * (1 - spin)),

where `spin` is what a waiting worker draws between idle (0) and busy (1). A collective spins: the device is fully
utilised while it waits (cupy issue 3557, NCCL issue 1025). What a step of the same work saves is the waiting, at
whatever power it is waited: at spin = 1 energy is saved as time is, at spin = 0 the idle watts of it. So a saving of
energy is never negative, and lies between the two.

All arguments broadcast: a study calls these with thousands of drawn constants at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.quantity import Quantity

JOULES_PER_KWH = 3.6e6
SECONDS_PER_HOUR = 3600.0

#: How the wait is charged; the first is the one that totals go by.
CHARGES = ("waiting spins", "waiting draws idle power", "waiting draws busy power")

#: What a waiting worker draws between idle and busy; idle is a board that a process holds and that does nothing.
SPIN = Quantity(
    value=0.35,
    low=0.01,
    high=1.0,
    unit="1",
    basis="derived",
    source="value: an H100 that mostly waits for launches and for others, gpt-oss-120b at 4 requests on 8 devices, "
    "draws 222 W, and 397 W at 64 requests on 2 (SemiAnalysis, InferenceX issue 828), and one that a process holds "
    "draws 127 W idle (card h100-measured): (222 - 127) / (397 - 127) = 0.35; low: a board that only polls a flag was "
    "measured at 1.3 to 3.5 % of the way (manual, Two measured GPUs), rounded down; high: a device that spins in a "
    "collective counts as fully utilised (cupy issue 3557, NCCL issue 1025). Execution-idle states took 10.7 % of the "
    "energy of a fleet (arXiv 2604.04745)",
)

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class FleetConstants:
    """Constants of a fleet's devices for one step-time law; floats or arrays of draws of one shape.

    Parameters
    ----------
    seconds
        s, duration of a step.
    waited_seconds
        s of it that the mean worker waits at the barrier.
    tokens
        Tokens that a step makes: running requests times tokens a request.
    devices
        Devices of the whole fleet.
    idle_watts, peak_watts
        W, of one device that does nothing, and of one that is busy.
    dollars_per_hour
        USD, of one device; NaN where no price is known.
    spin
        What a waiting worker draws between idle and busy, 0 to 1.
    """

    seconds: Values
    waited_seconds: Values
    tokens: float
    devices: int
    idle_watts: Values
    peak_watts: Values
    dollars_per_hour: Values
    spin: Values | float = SPIN.value


@dataclass(frozen=True, slots=True, eq=False)
class StepPrice:
    """Figures of one fleet under one router; each has the shape of the constants' draws.

    `wait_share` is of time; `wait_energy_share` is the share of energy drawn while waiting, under the charge taken.
    """

    step_seconds: Values
    tokens_per_second: Values
    wait_share: Values
    kilowatts: Values
    joules_per_token: Values
    wait_energy_share: Values
    grams_per_million: Values
    dollars_per_million: Values


def price_step(
    fleet: FleetConstants, charge: str = CHARGES[0], grams_per_kwh: float = float("nan"), overhead: float = 1.0
) -> StepPrice:
    """Price a mean step.

    Parameters
    ----------
    fleet
        Duration and constants.
    charge
        One of `CHARGES`.
    grams_per_kwh
        Carbon intensity of the electricity, g CO2 a kWh; NaN leaves carbon out.
    overhead
        Energy of the building for one joule of the devices (PUE), for carbon and joules a token alike.
    """
    wait_share = fleet.waited_seconds / fleet.seconds
    spin = {CHARGES[0]: fleet.spin, CHARGES[1]: 0.0, CHARGES[2]: 1.0}[charge]
    rise = fleet.peak_watts - fleet.idle_watts
    watts = fleet.idle_watts + rise * (1 - wait_share * (1 - spin))
    tokens_per_second = fleet.tokens / fleet.seconds
    joules = overhead * watts * fleet.devices / tokens_per_second
    return StepPrice(
        step_seconds=fleet.seconds,
        tokens_per_second=tokens_per_second,
        wait_share=wait_share,
        kilowatts=overhead * watts * fleet.devices / 1e3,
        joules_per_token=joules,
        wait_energy_share=wait_share * (fleet.idle_watts + rise * spin) / watts,
        grams_per_million=joules * 1e6 / JOULES_PER_KWH * grams_per_kwh,
        dollars_per_million=fleet.dollars_per_hour * fleet.devices / SECONDS_PER_HOUR / tokens_per_second * 1e6,
    )
