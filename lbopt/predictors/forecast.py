"""What a policy may know of the future: one forecast per running request, and the samples behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.samples import Samples


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """The forecast at one decision.

    Parameters
    ----------
    horizon
        H, the window it speaks of, steps.
    remaining
        float64 (A,): predicted remaining steps of each running request, 1 to H.
    waiting
        float64 (n,): the same for each waiting request, counted from its start; H where nothing is known.
    samples
        The output lengths that the predictor goes by; None where it goes by something else.
    active_buckets, waiting_buckets
        int64 (A,) and (n,): in which bucket of `samples` each running and each waiting request is; None as above.
    outlives, waiting_outlives
        bool (A,) and (n,): whether a forecast of H says that the request outlives the window, or that it ends with its
        last step; by default all of them outlive it.
    """

    horizon: int
    remaining: NDArray[np.float64]
    waiting: NDArray[np.float64]
    samples: Samples | None = None
    active_buckets: NDArray[np.int64] | None = None
    waiting_buckets: NDArray[np.int64] | None = None
    outlives: NDArray[np.bool_] = None  # type: ignore[assignment]  # None on the way in, an array from then on
    waiting_outlives: NDArray[np.bool_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name, values in (("outlives", self.remaining), ("waiting_outlives", self.waiting)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, values >= self.horizon)
        for name in ("remaining", "waiting"):
            values = getattr(self, name)
            if values.ndim != 1 or not np.isfinite(values).all():
                raise InputError(
                    f"a forecast's {name} has shape {values.shape} and {int((~np.isfinite(values)).sum())} entries "
                    "that are no numbers; expected one finite number of steps per request"
                )
