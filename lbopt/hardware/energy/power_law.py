"""Watts from utilisation: an idle floor and a concave rise.

    P_g = idle + (peak - idle) * u_g ** exponent,      u_g = L_g / max L         (W)

BF-IO, eq. (11) and appendix D, with the reading of utilisation that the authors' code uses and that reproduces the
energy column of their Table 1: a worker's share of the heaviest load, over the whole step. 100 W idle, 400 W peak,
exponent 0.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """Power of a worker as a function of its share of the heaviest load."""

    idle_watts: float = 100.0
    peak_watts: float = 400.0
    exponent: float = 0.7

    def __post_init__(self) -> None:
        if not 0 < self.peak_watts < math.inf:
            raise InputError(f"peak_watts is {self.peak_watts}; expected a finite number above 0")
        if not 0 <= self.idle_watts <= self.peak_watts:
            raise InputError(f"idle_watts is {self.idle_watts}; expected between 0 and peak_watts = {self.peak_watts}")
        if not 0 < self.exponent <= 1:
            raise InputError(f"exponent is {self.exponent}; expected in (0, 1]")

    def fleet_watts(self, loads: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the power of the whole fleet per step.

        Parameters
        ----------
        loads
            int64 (K, G), tokens. A step in which nothing is resident draws idle power.
        """
        heaviest = np.maximum(loads.max(axis=1, keepdims=True), 1)
        share = loads / heaviest
        watts = self.idle_watts + (self.peak_watts - self.idle_watts) * share**self.exponent
        total: NDArray[np.float64] = watts.sum(axis=1)
        return total
