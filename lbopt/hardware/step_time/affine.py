"""Step time, affine in the heaviest load: all workers wait at the barrier for the one with most resident tokens.

    seconds = fixed_seconds + seconds_per_token * max_g L_g            (BF-IO, eq. 6)

The constants of the BF-IO experiments: t = 1.5 * 2 * 576 * 61e-6 / 2**20 s a token and C = (0.6 ms * B + 35 ms) / 16,
4.8875 ms at B = 72 (the authors' code; they reproduce every digit of their Table 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.step_time.barrier_form import BarrierForm

BF_IO_SECONDS_PER_TOKEN = 1.5 * 2 * 576 * 61e-6 / 2**20


@dataclass(frozen=True, slots=True)
class AffineStepTime:
    """Seconds of a step as a function of the heaviest load in tokens."""

    fixed_seconds: float
    seconds_per_token: float

    def __post_init__(self) -> None:
        for name, value in (("fixed_seconds", self.fixed_seconds), ("seconds_per_token", self.seconds_per_token)):
            if not math.isfinite(value) or value < 0:
                raise InputError(f"{name} is {value}; expected a finite number of zero or more")
        if self.fixed_seconds == 0 and self.seconds_per_token == 0:
            raise InputError("fixed_seconds and seconds_per_token are both 0: a step would take no time")

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
