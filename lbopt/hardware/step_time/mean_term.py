"""Step time with a mean term: what a worker does alone waits for the heaviest, the rest is proportional to the mean.

    seconds = fixed + alone * max_g L_g + together * mean_g L_g              (Li, The EP Barrier Tax, section 1)

The first term is attention over the worker's own tokens. The second stands for what all workers do together: expert
all-to-all, expert layers, reductions. In a balanced state balancing cannot touch together / (alone + together) of it:
0.23, 0.33 and 0.5 at ratios of 0.3, 0.5 and 1. The post takes alone = 1 and together = 0.5, in units of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.step_time.barrier_form import BarrierForm


@dataclass(frozen=True, slots=True)
class MeanTermStepTime:
    """Seconds of a step as a function of the heaviest and of the mean load in tokens."""

    seconds_per_token: float
    seconds_per_mean_token: float
    fixed_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("seconds_per_token", "seconds_per_mean_token", "fixed_seconds"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise InputError(f"{name} is {value}; expected a finite number of zero or more")
        self.form(1, 1)  # refuses a step that takes no time

    @property
    def name(self) -> str:
        """As users name it."""
        return (
            f"mean-term:per_token={self.seconds_per_token!r},per_mean_token={self.seconds_per_mean_token!r},"
            f"fixed={self.fixed_seconds!r}"
        )

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the same law for any fleet."""
        return BarrierForm(self.fixed_seconds, self.seconds_per_token, self.seconds_per_mean_token)

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data."""
        return {
            "kind": "mean-term",
            "seconds_per_token": self.seconds_per_token,
            "seconds_per_mean_token": self.seconds_per_mean_token,
            "fixed_seconds": self.fixed_seconds,
        }
