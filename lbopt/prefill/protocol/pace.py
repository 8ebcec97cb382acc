"""The interval and the typical pass, from a median that no minority of outliers can move.

Algorithm 1 of SBS (arXiv 2512.16134) sets interval = (mean pass + latency) / instances. One pass reported as 3,600 s
would move a mean of eight to 450 s, the interval with it, and the watchdog to five times that. Here the *typical pass*
is the median of the last w measurements; two copies of the default stand before the first of them, as if they had been
measured.

Bound. Let at most (w - 1) // 2 of the last w values be outliers, of any size, and let all others and the default lie
between a and b. Then the typical pass lies between a and b, the interval is at most (b + latency) / instances, and the
watchdog at most its multiple of b.

Proof. Sort the n values of the window, 3 <= n <= w. If more than half of them lie in [a, b], so does each of the middle
values: fewer than n / 2 values are below a, so that the upper of the middle ones, and for even n the lower one too
(there at most n / 2 - 1 are below), is at least a; likewise for b. With n = 3 one outlier is allowed. While the window
is not full it holds two defaults, so that the outliers among n values are at most n - 2 of the measured ones: the
claim then needs no more than (n - 1) // 2 of them.

Where the outliers are a majority, the typical pass still lies between default / spread and default x spread, because
every measurement is brought between these ends.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

from lbopt.prefill.protocol.setting import ProtocolSetting


@dataclass(frozen=True, slots=True)
class Pace:
    """Never changed in place.

    Parameters
    ----------
    measured
        s, the window: measured passes and at first the defaults, the oldest first.
    ordered
        The same, ascending.
    typical
        s, their median.
    interval
        s, between dispatches.
    """

    measured: tuple[float, ...]
    ordered: tuple[float, ...]
    typical: float
    interval: float

    @classmethod
    def cold(cls, setting: ProtocolSetting) -> Pace:
        """Return the pace before the first measurement."""
        default = setting.default_pass
        fixed = setting.interval
        interval = (default + setting.latency) / setting.num_instances if fixed is None else fixed
        return cls((default, default), (default, default), default, interval)

    def after_pass(self, seconds: float, instances: int, setting: ProtocolSetting) -> Pace:
        """Return the pace after a pass of `seconds`, with so many instances in the fleet."""
        seconds = min(max(seconds, setting.shortest_pass), setting.longest_pass)
        measured, ordered = (*self.measured, seconds), list(self.ordered)
        if len(measured) > setting.window:
            del ordered[bisect_left(ordered, measured[0])]
            measured = measured[1:]
        insort(ordered, seconds)
        half = len(ordered) // 2
        typical = ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
        return Pace(measured, tuple(ordered), typical, self._interval(typical, instances, setting))

    def after_change(self, instances: int, setting: ProtocolSetting) -> Pace:
        """Return the pace of a fleet of so many instances; without one the interval stays as it is."""
        return Pace(self.measured, self.ordered, self.typical, self._interval(self.typical, instances, setting))

    def _interval(self, typical: float, instances: int, setting: ProtocolSetting) -> float:
        if setting.interval is not None or not instances:
            return self.interval
        return (typical + setting.latency) / instances
