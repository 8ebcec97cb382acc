"""Watts from what a worker does: an idle floor and a rise to the peak.

    P_g = idle + (peak - idle) * duty_g                                         (W)

BF-IO, eq. (11) and appendix D: 100 W idle, 400 W peak, exponent 0.7. What `duty` is depends on how the wait at the
barrier is charged; `readings.py` holds the four readings. "share" is what the authors' code does and reproduces the
energy column of their Table 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.energy.readings import READINGS, Duty, PrintedUtilisation
from lbopt.spec import unknown


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
