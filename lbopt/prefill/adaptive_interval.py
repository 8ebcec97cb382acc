"""Algorithm 1 of SBS (arXiv 2512.16134): the dispatch interval from measured pass times and healthy instances.

interval = (mean pass + latency) / instances, with the mean over the last `window` measurements, of all instances
together. The default stands in until the first measurement, and is never mixed with measurements. With no healthy
instance the interval stays as it is.
"""

from __future__ import annotations

import math
from collections import deque

from lbopt.exceptions import InputError


class AdaptiveInterval:
    """The interval, which every measured pass and every change of the fleet sets anew.

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
        self._measured: deque[float] = deque(maxlen=window)
        self._latency = latency
        self._instances = instances
        self.mean_pass = default_pass
        self.interval = math.nan
        self._recompute()

    @property
    def measured(self) -> tuple[float, ...]:
        """The measurements in the window, s, the oldest first."""
        return tuple(self._measured)

    def on_end_forward(self, seconds: float) -> float:
        """Take the time of a pass that ended; returns the new interval."""
        if not (math.isfinite(seconds) and seconds > 0):
            raise InputError(f"a pass took {seconds} s; expected more than 0")
        self._measured.append(seconds)
        self.mean_pass = sum(self._measured) / len(self._measured)
        return self._recompute()

    def on_topology_change(self, instances: int) -> float:
        """Take the number of healthy instances, 0 or more; returns the new interval."""
        if instances < 0:
            raise InputError(f"there are {instances} healthy instances; expected 0 or more")
        self._instances = instances
        return self._recompute()

    def _recompute(self) -> float:
        if self._instances > 0:
            self.interval = (self.mean_pass + self._latency) / self._instances
        return self.interval
