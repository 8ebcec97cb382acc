"""What a decode step costs: time, tokens, joules, carbon and money, from the load of the heaviest and the mean worker.

A worker that holds L tokens waits per_token * (max L - L) seconds of every step: what is fixed, what all do together
and what depends on the number of running requests is not waiting. So the mean share of a step that is waited away is

    wait = per_token * (max L - mean L) / seconds,

and a fleet whose waiting workers draw idle power draws, per worker, peak - (peak - idle) * wait. This is the reading
"split-fixed-busy" of the power law for any step-time law. The two other readings, which go by the share of the heaviest
load alone, stand beside it (`lbopt/hardware/energy/readings.py` says what they are).

All arguments broadcast: a study calls these with thousands of drawn constants at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

JOULES_PER_KWH = 3.6e6
SECONDS_PER_HOUR = 3600.0

#: How the wait is charged; the first is the one that totals go by.
CHARGES = ("waiting draws idle power", "share of the heaviest load", "share, to the power 0.7")

#: BF-IO's exponent, eq. (11), for the reading that has one.
EXPONENT = 0.7

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
        W, of one device.
    dollars_per_hour
        USD, of one device; NaN where no price is known.
    """

    seconds: Values
    waited_seconds: Values
    tokens: float
    devices: int
    idle_watts: Values
    peak_watts: Values
    dollars_per_hour: Values


@dataclass(frozen=True, slots=True, eq=False)
class StepPrice:
    """Figures of one fleet under one router; each has the shape of the constants' draws.

    `wait_share` is of time; `wait_energy_share` is the share of energy drawn at idle power, under the charge taken.
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
    fleet: FleetConstants,
    share_of_heaviest: Any,
    duty: Any,
    charge: str = CHARGES[0],
    grams_per_kwh: float = float("nan"),
    overhead: float = 1.0,
) -> StepPrice:
    """Price a mean step.

    Parameters
    ----------
    fleet
        Duration and constants.
    share_of_heaviest
        Mean over workers and steps of L_g / max L.
    duty
        Mean of (L_g / max L) ** 0.7.
    charge
        One of `CHARGES`.
    grams_per_kwh
        Carbon intensity of the electricity, g CO2 a kWh; NaN leaves carbon out.
    overhead
        Energy of the building for one joule of the devices (PUE), for carbon and joules a token alike.
    """
    wait_share = fleet.waited_seconds / fleet.seconds
    busy = {CHARGES[0]: 1 - wait_share, CHARGES[1]: share_of_heaviest, CHARGES[2]: duty}[charge]
    watts = fleet.idle_watts + (fleet.peak_watts - fleet.idle_watts) * busy
    tokens_per_second = fleet.tokens / fleet.seconds
    joules = overhead * watts * fleet.devices / tokens_per_second
    return StepPrice(
        step_seconds=fleet.seconds,
        tokens_per_second=tokens_per_second,
        wait_share=wait_share,
        kilowatts=overhead * watts * fleet.devices / 1e3,
        joules_per_token=joules,
        wait_energy_share=fleet.idle_watts * (1 - busy) / watts,
        grams_per_million=joules * 1e6 / JOULES_PER_KWH * grams_per_kwh,
        dollars_per_million=fleet.dollars_per_hour * fleet.devices / SECONDS_PER_HOUR / tokens_per_second * 1e6,
    )
