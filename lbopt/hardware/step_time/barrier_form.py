"""The barrier form: what every step-time law of lbopt comes down to for a given fleet.

    seconds = fixed + max_g (per_token * L_g + of_running[n_g] + per_expert * U_g)
              + per_mean_token * mean_g L_g + of_active[sum_g n_g]

L_g are the resident tokens of worker g, n_g its running requests, and U_g the different experts of a layer that they
use, where that is known. The maximum is the barrier: what a worker does
alone, and all wait for. What all do together is outside of it. The two tables hold whatever depends on how many
requests run: weights that are read once however many use them, arithmetic per request, the number of experts that a
batch wakes, the payload of a collective. They are empty where nothing does.

The compiled loop (`lbopt/kernels/simulation/step.py`) evaluates the same form; this is the readable twin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError


def _nothing() -> NDArray[np.float64]:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class BarrierForm:
    """Seconds of a step, ready to be evaluated.

    Parameters
    ----------
    fixed
        s, whatever the load is.
    per_token
        s per token of a worker's own load.
    per_mean_token
        s per token of the mean load of the workers.
    of_running
        float64 (B + 1,), s that a worker with n running requests spends on them, or empty.
    of_active
        float64 (G * B + 1,), s that the fleet spends together on n running requests, or empty.
    per_expert
        s per different expert of a layer that the requests of a worker use, mean over its layers.
    """

    fixed: float
    per_token: float
    per_mean_token: float = 0.0
    of_running: NDArray[np.float64] = field(default_factory=_nothing)
    of_active: NDArray[np.float64] = field(default_factory=_nothing)
    per_expert: float = 0.0

    def __post_init__(self) -> None:
        for name in ("fixed", "per_token", "per_mean_token", "per_expert"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise InputError(f"{name} of a step is {value} s; expected a finite number of zero or more")
        for name in ("of_running", "of_active"):
            table = getattr(self, name)
            if table.ndim != 1 or not np.isfinite(table).all() or (table < 0).any():
                raise InputError(f"{name} of a step is not a table of finite seconds of zero or more")
        if not (
            self.fixed
            or self.per_token
            or self.per_mean_token
            or self.per_expert
            or self.of_running.any()
            or self.of_active.any()
        ):
            raise InputError("every part of the step time is 0 s: a step would take no time")

    def seconds(
        self, loads: NDArray[Any], running: NDArray[np.int64] | None = None, experts: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the seconds of each step.

        Parameters
        ----------
        loads
            (..., G), resident tokens of every worker during the step.
        running
            int64 (..., G), running requests of every worker; may be left out where no table is in the form.
        experts
            (..., G), different experts of a layer that they use; may be left out where `per_expert` is 0.
        """
        own = self.per_token * loads
        together: Any = self.per_mean_token * loads.mean(axis=-1)
        if self.of_running.size or self.of_active.size:
            if running is None:
                raise InputError("this step time depends on the running requests, which were not given")
            if self.of_running.size:
                own = own + self.of_running[running]
            if self.of_active.size:
                together = together + self.of_active[running.sum(axis=-1)]
        if self.per_expert:
            if experts is None:
                raise InputError("this step time depends on the experts in use, which were not given")
            own = own + self.per_expert * experts
        total: NDArray[np.float64] = self.fixed + own.max(axis=-1) + together
        return total
