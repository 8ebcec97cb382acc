"""The barrier form, to which every step-time law comes down for a given fleet, and the two laws that are nothing else.

    seconds = fixed + max_g (per_token * L_g + of_running[n_g] + per_expert * U_g)
              + per_mean_token * mean_g L_g + of_active[sum_g n_g]

L_g are the resident tokens of worker g, n_g its running requests, and U_g the different experts of a layer that they
use, where that is known. The maximum is the barrier: what a worker does
alone, and all wait for. What all do together is outside of it. The two tables hold whatever depends on how many
requests run: weights that are read once however many use them, arithmetic per request, the number of experts that a
batch wakes, the payload of a collective. They are empty where nothing does.

The compiled loop (`lbopt/kernels/simulation/step.py`) evaluates the same form; this is the readable twin.

Step time, affine in the heaviest load: all workers wait at the barrier for the one with most resident tokens.

    seconds = fixed_seconds + seconds_per_token * max_g L_g            (BF-IO, eq. 6)

The constants of the BF-IO experiments: t = 1.5 * 2 * 576 * 61e-6 / 2**20 s a token and C = (0.6 ms * B + 35 ms) / 16,
4.8875 ms at B = 72 (the authors' code; they reproduce every digit of their Table 1).

Step time with a mean term: what a worker does alone waits for the heaviest, the rest is proportional to the mean.

    seconds = fixed + alone * max_g L_g + together * mean_g L_g              (Li, The EP Barrier Tax, section 1)

The first term is attention over the worker's own tokens. The second stands for what all workers do together: expert
all-to-all, expert layers, reductions. In a balanced state balancing cannot touch together / (alone + together) of it:
0.23, 0.33 and 0.5 at ratios of 0.3, 0.5 and 1. The post takes alone = 1 and together = 0.5, in units of its own.
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


def require_seconds(law: Any, *names: str, of: str = "", unit: str = "") -> None:
    """Refuse a law one of whose named numbers is no finite number of zero or more."""
    for name in names:
        value = getattr(law, name)
        if not math.isfinite(value) or value < 0:
            raise InputError(f"{name}{of} is {value}{unit}; expected a finite number of zero or more")


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
        require_seconds(self, "fixed", "per_token", "per_mean_token", "per_expert", of=" of a step", unit=" s")
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


BF_IO_SECONDS_PER_TOKEN = 1.5 * 2 * 576 * 61e-6 / 2**20


@dataclass(frozen=True, slots=True)
class AffineStepTime:
    """Seconds of a step as a function of the heaviest load in tokens."""

    fixed_seconds: float
    seconds_per_token: float

    def __post_init__(self) -> None:
        require_seconds(self, "fixed_seconds", "seconds_per_token")
        self.form(1, 1)  # refuses a step that takes no time

    @classmethod
    def of_bf_io_paper(cls, slots_per_worker: int) -> AffineStepTime:
        """Return the constants of the BF-IO experiments for B slots a worker."""
        return cls(
            fixed_seconds=(slots_per_worker * 0.6e-3 + 35e-3) / 16,
            seconds_per_token=BF_IO_SECONDS_PER_TOKEN,
        )

    @property
    def name(self) -> str:
        """As users name it."""
        return f"affine:fixed={self.fixed_seconds!r},per_token={self.seconds_per_token!r}"

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the same law for any fleet."""
        return BarrierForm(self.fixed_seconds, self.seconds_per_token)

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data."""
        return {"kind": "affine", "fixed_seconds": self.fixed_seconds, "seconds_per_token": self.seconds_per_token}

    def seconds(self, heaviest_load: float) -> float:
        """Return the seconds of a step whose heaviest worker holds `heaviest_load` tokens."""
        return self.fixed_seconds + self.seconds_per_token * heaviest_load


@dataclass(frozen=True, slots=True)
class MeanTermStepTime:
    """Seconds of a step as a function of the heaviest and of the mean load in tokens."""

    seconds_per_token: float
    seconds_per_mean_token: float
    fixed_seconds: float = 0.0

    def __post_init__(self) -> None:
        require_seconds(self, "seconds_per_token", "seconds_per_mean_token", "fixed_seconds")
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
