"""Watts from what workers do: four readings of one power law.

How the wait at the barrier is charged: four readings of one power law.

With u_g = L_g / max L, the share of the heaviest load, and dt the duration of the step:

==================  ============================================================================================
share               duty = u_g ** exponent: the whole step at one averaged utilisation. BF-IO's authors' code; it
                    reproduces the energy column of their Table 1.
split               duty = u_g: busy at peak for a share u_g of the step, idle for the rest. The text of BF-IO says
                    that a waiting worker draws about idle power.
split-fixed-busy    duty = 1 - t (max L - L_g) / dt, with t seconds a token: idle while it waits for the heaviest load,
                    busy in whatever no load changes. For the affine law that is 1 - (dt - C) / dt * (1 - u_g).
mfu                 duty = min(mfu / saturation, 1) ** exponent with mfu = 2 * parameters * (active / G) / dt / peak
                    FLOP/s: BF-IO, eqs. (55) to (57), as printed.
==================  ============================================================================================

The printed form cannot have made the table: with the code's 7e10 parameters and 312 TFLOP/s, 5,000 tokens a second on
every GPU are an mfu of 2.2. Utilisation saturates, every router draws 16 * 400 W, and energy is time alone.

The reading decides the sign of the saving: balance makes steps shorter and waiting workers busy. From FCFS to BF-IO
(H = 0) over Table 1's runs, "share" saves 2.6 %, "split-fixed-busy" 3.6 %, and "split" costs 1.0 % more.

Watts from what a worker does: an idle floor and a rise to the peak.

    P_g = idle + (peak - idle) * duty_g                                         (W)

BF-IO, eq. (11) and appendix D: 100 W idle, 400 W peak, exponent 0.7. What `duty` is depends on how the wait at the
barrier is charged; `readings.py` holds the four readings. "share" is what the authors' code does and reproduces the
energy column of their Table 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.spec import unknown


@dataclass(frozen=True, slots=True)
class PrintedUtilisation:
    """Constants of BF-IO's eqs. (55) to (57): model parameters, peak FLOP/s of a device, utilisation that saturates."""

    parameters: float = 7e10
    peak_flops: float = 312e12
    saturation: float = 0.45

    def __post_init__(self) -> None:
        for name in ("parameters", "peak_flops", "saturation"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InputError(f"{name} is {value}; expected a finite number above 0")

    def of(self, tokens_per_second: NDArray[np.float64] | float) -> Any:
        """Return the model FLOPs utilisation of a device that makes so many tokens a second; it may exceed 1."""
        return 2 * self.parameters * tokens_per_second / self.peak_flops

    def describe(self) -> dict[str, Any]:
        """Return the constants as plain data."""
        return {"parameters": self.parameters, "peak_flops": self.peak_flops, "saturation": self.saturation}


class Duty(NamedTuple):
    """What a reading goes by; shapes as in `PowerLaw.fleet_watts`."""

    loads: NDArray[Any]
    seconds: NDArray[np.float64]
    seconds_per_token: float
    active: NDArray[Any]
    exponent: float
    printed: PrintedUtilisation

    @property
    def share(self) -> NDArray[np.float64]:
        """float64 (K, G), each worker's share of the heaviest load; 0 where nothing is resident."""
        heaviest = self.loads.max(axis=1, keepdims=True)
        of_heaviest: NDArray[np.float64] = self.loads / np.where(heaviest > 0, heaviest, 1)
        return of_heaviest


def share(step: Duty) -> NDArray[np.float64]:
    """Charge the whole step at one averaged utilisation."""
    duty: NDArray[np.float64] = step.share**step.exponent
    return duty


def split(step: Duty) -> NDArray[np.float64]:
    """Charge peak power while busy and idle power while waiting."""
    return step.share


def split_fixed_busy(step: Duty) -> NDArray[np.float64]:
    """Charge idle power while a worker waits for the heaviest load; nothing resident is idle."""
    heaviest = step.loads.max(axis=1, keepdims=True)
    waited = step.seconds_per_token * (heaviest - step.loads) / step.seconds[:, None]
    duty: NDArray[np.float64] = np.where(heaviest > 0, 1 - np.minimum(waited, 1.0), 0.0)
    return duty


def mfu(step: Duty) -> NDArray[np.float64]:
    """Charge by the model FLOPs utilisation as printed, the same for every worker."""
    tokens_per_second = step.active / step.loads.shape[1] / step.seconds
    utilisation = np.minimum(step.printed.of(tokens_per_second) / step.printed.saturation, 1.0) ** step.exponent
    return np.repeat(utilisation[:, None], step.loads.shape[1], axis=1)


READINGS: dict[str, Callable[[Duty], NDArray[np.float64]]] = {
    "share": share,
    "split": split,
    "split-fixed-busy": split_fixed_busy,
    "mfu": mfu,
}


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """Power of a worker.

    Parameters
    ----------
    idle_watts, peak_watts
        W, of a worker that does nothing and of one that is never waiting.
    exponent
        Of the utilisation, in (0, 1], where the reading has one.
    reading
        How utilisation is read, a name from `READINGS`.
    printed
        Constants of the reading "mfu".
    """

    idle_watts: float = 100.0
    peak_watts: float = 400.0
    exponent: float = 0.7
    reading: str = "share"
    printed: PrintedUtilisation = field(default_factory=PrintedUtilisation)

    def __post_init__(self) -> None:
        if not 0 < self.peak_watts < math.inf:
            raise InputError(f"peak_watts is {self.peak_watts}; expected a finite number above 0")
        if not 0 <= self.idle_watts <= self.peak_watts:
            raise InputError(f"idle_watts is {self.idle_watts}; expected between 0 and peak_watts = {self.peak_watts}")
        if not 0 < self.exponent <= 1:
            raise InputError(f"exponent is {self.exponent}; expected in (0, 1]")
        if self.reading not in READINGS:
            raise unknown("reading of the power law", self.reading, READINGS)

    def fleet_watts(
        self,
        loads: NDArray[Any],
        seconds: NDArray[np.float64],
        seconds_per_token: float,
        active: NDArray[Any],
    ) -> NDArray[np.float64]:
        """Return the power of the whole fleet, averaged over each step.

        Parameters
        ----------
        loads
            (K, G), tokens. A step in which nothing is resident draws idle power.
        seconds
            float64 (K,), durations of the steps.
        seconds_per_token
            s that a worker waits for each token that the heaviest holds more than itself.
        active
            (K,), requests that run in the step, for the reading "mfu".
        """
        duty = READINGS[self.reading](Duty(loads, seconds, seconds_per_token, active, self.exponent, self.printed))
        watts = self.idle_watts + (self.peak_watts - self.idle_watts) * duty
        total: NDArray[np.float64] = watts.sum(axis=1)
        return total

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data."""
        data: dict[str, Any] = {
            "idle_watts": self.idle_watts,
            "peak_watts": self.peak_watts,
            "exponent": self.exponent,
            "reading": self.reading,
        }
        return data | ({"printed": self.printed.describe()} if self.reading == "mfu" else {})
