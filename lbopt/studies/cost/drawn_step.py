"""The mean step of a load point under a step-time law whose constants are drawn many times over.

The tables of the barrier form are read between their entries, because the mean number of running requests is no whole
number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware import BarrierForm
from lbopt.studies.cost.load_point import LoadPoint

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DrawnStep:
    """Seconds of a mean step, part by part; float64 (D,), one entry a draw of the constants.

    Parameters
    ----------
    seconds
        s, duration.
    waited_seconds
        s of it that the mean worker waits at the barrier.
    """

    seconds: Values
    waited_seconds: Values


@dataclass(frozen=True, slots=True, eq=False)
class DrawnForm:
    """The barrier form for a fleet and a number of running requests, float64 (D,) each.

    Parameters
    ----------
    level
        s, what no load changes: the fixed part and what the running requests cost.
    per_token, per_mean_token
        s per token of the heaviest, and of the mean load.
    """

    level: Values
    per_token: Values
    per_mean_token: Values

    @classmethod
    def of(cls, forms: Iterable[BarrierForm], num_workers: int, running: float) -> DrawnForm:
        """Return the forms, one a draw, at `running` requests a worker; each is let go before the next is made."""
        parts = np.array(
            [
                (
                    form.fixed + _between(form.of_running, running) + _between(form.of_active, running * num_workers),
                    form.per_token,
                    form.per_mean_token,
                )
                for form in forms
            ]
        )
        return cls(level=parts[:, 0], per_token=parts[:, 1], per_mean_token=parts[:, 2])

    @classmethod
    def of_entries(cls, forms: Iterable[BarrierForm]) -> DrawnForm:
        """Return forms whose tables hold nothing but the entry of the running requests that are asked for."""
        parts = [(f.fixed + f.of_running.sum() + f.of_active.sum(), f.per_token, f.per_mean_token) for f in forms]
        level, per_token, per_mean_token = np.array(parts).T
        return cls(level=level, per_token=per_token, per_mean_token=per_mean_token)

    def step(self, point: LoadPoint, own: Values, shared: Values) -> DrawnStep:
        """Return the mean step at `point`.

        Parameters
        ----------
        own, shared
            float64 (D,), standard errors that its heaviest load is off, by itself and as that of the first point is.
        """
        off = point.max_load_error * own + point.shared_error * shared
        heaviest = np.maximum(point.max_load + off, point.mean_load)
        waited = self.per_token * (heaviest - point.mean_load)
        together = (self.per_token + self.per_mean_token) * point.mean_load
        return DrawnStep(seconds=self.level + together + waited, waited_seconds=waited)


def _between(table: Values, at: float) -> float:
    return float(np.interp(at, np.arange(table.size), table)) if table.size else 0.0
