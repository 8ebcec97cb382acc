"""Sources left out: what the calibrated law, fitted to all other sources, says of one that it has not seen.

For every source in turn the law is calibrated by the rows of all others, and the source's rows are forecast with 90 %
intervals. Every run of the source left out has an effect of its own, of which nothing is known. The error of a row is
|forecast / measured - 1|; that of a source is the median over its rows, so that a source of many rows counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.calibrated.features import StepFeatures
from lbopt.hardware.calibrated.posterior import Scatter, calibrate_steps
from lbopt.hardware.published import MeasuredStep

Numbers = NDArray[np.float64]

LEVELS = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Forecasts of one source's steps, float64 (P,) each, in seconds.

    Parameters
    ----------
    source, steps
        Key of the source, and its rows.
    nominal
        By the mean of what is believed.
    low, median, high
        Ends between which 90 % of the draws lie, and their median.
    """

    source: str
    steps: tuple[MeasuredStep, ...]
    nominal: Numbers
    low: Numbers
    median: Numbers
    high: Numbers

    @property
    def measured(self) -> Numbers:
        """s, as published."""
        return np.array([step.seconds for step in self.steps])

    @property
    def errors(self) -> Numbers:
        """Forecast over measured less one, by row."""
        return np.asarray(self.median / self.measured - 1)

    @property
    def error(self) -> float:
        """Median over the rows of the error's size."""
        return float(np.median(np.abs(self.errors)))

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Whether the measured step lies within the interval, by row."""
        return np.asarray((self.low <= self.measured) & (self.measured <= self.high))

    @property
    def width(self) -> float:
        """Median of high over low."""
        return float(np.median(self.high / self.low))


def forecast_source(
    source: str, seen: Sequence[MeasuredStep], unseen: Sequence[MeasuredStep], scatter: Scatter | None = None
) -> Forecast:
    """Return the forecast of unseen steps by a law that is calibrated by the seen ones.

    Parameters
    ----------
    source
        Key of the source of the unseen steps.
    seen, unseen
        Steps; no source may be in both.
    scatter
        Of rows and runs; None finds it from the seen steps.
    """
    shared = {step.source for step in seen} & {step.source for step in unseen}
    if shared:
        raise InputError(f"source '{min(shared)}' is both seen and forecast; leave it out of one of the two")
    believed, features = calibrate_steps(seen, scatter), StepFeatures.of(unseen)
    low, median, high = np.quantile(believed.forecast(features), LEVELS, axis=0)
    return Forecast(source, tuple(unseen), believed.nominal(features), low, median, high)


def leave_sources_out(steps: Sequence[MeasuredStep], scatter: Scatter | None = None) -> tuple[Forecast, ...]:
    """Return the forecast of every source by the law that the other sources calibrate, the worst source first."""
    sources = dict.fromkeys(step.source for step in steps)
    found = [
        forecast_source(
            source,
            [step for step in steps if step.source != source],
            [step for step in steps if step.source == source],
            scatter,
        )
        for source in sources
    ]
    return tuple(sorted(found, key=lambda one: -one.error))
