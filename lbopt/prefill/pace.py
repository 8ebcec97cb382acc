"""Algorithm 1 of SBS (arXiv 2512.16134): the dispatch interval from measured pass times and healthy instances.

interval = (typical pass + latency) / instances, with the typical pass over the last `window` measurements, of all
instances together. With no healthy instance the interval stays as it is. The source has the *mean*, for which a default
stands in until the first measurement, and every pass counts, also the further ones of a backlog.

One pass reported as 3,600 s would move a mean of eight to 450 s, the interval with it, and the watchdog to five times
that. The *median* is not moved by any minority of outliers; two copies of the default stand before the first
measurement, as if they had been measured.

Bound. Let at most (w - 1) // 2 of the last w values be outliers, of any size, and let all others and the default lie
between a and b. Then the median lies between a and b, the interval is at most (b + latency) / instances, and the
watchdog at most its multiple of b.

Proof. Sort the n values of the window, 3 <= n <= w. If more than half of them lie in [a, b], so does each of the middle
values: fewer than n / 2 values are below a, so that the upper of the middle ones, and for even n the lower one too
(there at most n / 2 - 1 are below), is at least a; likewise for b. With n = 3 one outlier is allowed. While the window
is not full it holds two defaults, so that the outliers among n values are at most n - 2 of the measured ones: the
claim then needs no more than (n - 1) // 2 of them.

Where the outliers are a majority, the median still lies between default / spread and default x spread, because every
measurement is brought between these ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from lbopt.exceptions import InputError
from lbopt.kernels.prefill.rules import interval_of

if TYPE_CHECKING:
    from lbopt.prefill.protocol.setting import ProtocolSetting


def mean(values: Sequence[float]) -> float:
    """Return the mean; summed from the left in every version of Python, as the compiled loop does."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values)


class Pace(NamedTuple):
    """Never changed in place.

    Parameters
    ----------
    measured
        s, the passes of the window; the next one takes the place `passes` modulo the window.
    passes
        Measured since the start.
    typical
        s, their mean or median.
    interval
        s, between dispatches.
    """

    measured: tuple[float, ...]
    passes: int
    typical: float
    interval: float

    @classmethod
    def cold(cls, setting: ProtocolSetting) -> Pace:
        """Return the pace before the first measurement."""
        default = setting.default_pass
        measured = (default, default) if setting.pace == "median" else ()
        pace = cls(measured, len(measured), default, math.nan if setting.interval is None else setting.interval)
        return pace.after_change(setting.num_instances, setting)

    def after_pass(self, seconds: float, instances: int, setting: ProtocolSetting) -> Pace:
        """Return the pace after a pass of `seconds`, with so many instances in the fleet."""
        if not setting.window:
            return self
        if setting.pace == "mean":
            pace = self.measuring(seconds, setting.window, mean)
        else:
            pace = self.measuring(
                min(max(seconds, setting.shortest_pass), setting.longest_pass), setting.window, median
            )
        return pace.after_change(instances, setting)

    def after_change(self, instances: int, setting: ProtocolSetting) -> Pace:
        """Return the pace of a fleet of so many instances; without one the interval stays as it is."""
        return self if setting.interval is not None else self.shared(setting.latency, instances)

    def measuring(self, seconds: float, window: int, typical: Callable[[Sequence[float]], float]) -> Pace:
        """Return the pace with one more pass in the window, and the `typical` one of these."""
        slot = self.passes % window
        measured = (*self.measured[:slot], seconds, *self.measured[slot + 1 :])
        return Pace(measured, self.passes + 1, typical(measured), self.interval)

    def shared(self, latency: float, instances: int) -> Pace:
        """Return the pace with the interval of so many healthy instances."""
        return self._replace(interval=interval_of(self.typical, latency, instances)) if instances else self

    def in_order(self, window: int) -> tuple[float, ...]:
        """Return the passes of the window, s, the oldest first."""
        oldest = self.passes % window
        return (*self.measured[oldest:], *self.measured[:oldest])


class AdaptiveInterval:
    """The interval, which every measured pass and every change of the fleet sets anew; for a live scheduler.

    Parameters
    ----------
    window
        Measurements that are averaged, >= 1.
    default_pass
        s, the pass time until one has been measured.
    latency
        s, from the scheduler to an instance.
    instances
        Healthy instances at the start, >= 1.
    """

    def __init__(self, window: int, default_pass: float, latency: float, instances: int) -> None:
        if window < 1:
            raise InputError(f"window is {window}; expected at least 1 measured pass to average over")
        for name, value, least in (("default_pass", default_pass, 1e-9), ("latency", latency, 0.0)):
            if not (math.isfinite(value) and value >= least):
                raise InputError(f"{name} is {value} s; expected {'0 or more' if least == 0 else 'more than 0'}")
        if instances < 1:
            raise InputError(f"there are {instances} healthy instances; expected at least 1 to begin with")
        self._window, self._latency, self._instances = window, latency, instances
        self._pace = Pace((), 0, default_pass, math.nan).shared(latency, instances)

    @property
    def mean_pass(self) -> float:
        """The mean of the window, or the default, s."""
        return self._pace.typical

    @property
    def interval(self) -> float:
        """The interval, s."""
        return self._pace.interval

    @property
    def measured(self) -> tuple[float, ...]:
        """The measurements in the window, s, the oldest first."""
        return self._pace.in_order(self._window)

    def on_end_forward(self, seconds: float) -> float:
        """Take the time of a pass that ended; returns the new interval."""
        if not (math.isfinite(seconds) and seconds > 0):
            raise InputError(f"a pass took {seconds} s; expected more than 0")
        self._pace = self._pace.measuring(seconds, self._window, mean).shared(self._latency, self._instances)
        return self.interval

    def on_topology_change(self, instances: int) -> float:
        """Take the number of healthy instances, 0 or more; returns the new interval."""
        if instances < 0:
            raise InputError(f"there are {instances} healthy instances; expected 0 or more")
        self._instances, self._pace = instances, self._pace.shared(self._latency, instances)
        return self.interval
