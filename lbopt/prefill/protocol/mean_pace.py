"""The interval from the mean of the last passes, as Algorithm 1 of SBS (arXiv 2512.16134) has it.

One outlier moves a mean: see `pace` for the median, which is the default. This reading is there because the source and
the compiled simulation of passes have it, and every pass counts, also the further ones of a backlog.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.prefill.protocol.pace import Pace
from lbopt.prefill.protocol.setting import ProtocolSetting


@dataclass(frozen=True, slots=True)
class MeanPace:
    """Never changed in place.

    Parameters
    ----------
    measured
        s, the last passes, not in their order.
    count
        Passes measured since the start.
    typical
        s, their mean; the default until there is one, and always without a window.
    interval
        s, between dispatches.
    """

    measured: tuple[float, ...]
    count: int
    typical: float
    interval: float

    def after_pass(self, seconds: float, instances: int, setting: ProtocolSetting) -> MeanPace:
        """Return the pace after a pass of `seconds`, with so many instances in the fleet."""
        if not setting.window:
            return self
        slot = self.count % setting.window
        measured = (*self.measured[:slot], seconds, *self.measured[slot + 1 :])
        total = 0.0
        for one in measured:
            total += one
        typical = total / len(measured)
        return MeanPace(measured, self.count + 1, typical, self._interval(typical, instances, setting))

    def after_change(self, instances: int, setting: ProtocolSetting) -> MeanPace:
        """Return the pace of a fleet of so many instances; without one the interval stays as it is."""
        return MeanPace(self.measured, self.count, self.typical, self._interval(self.typical, instances, setting))

    def _interval(self, typical: float, instances: int, setting: ProtocolSetting) -> float:
        if setting.interval is not None or not instances:
            return self.interval
        return (typical + setting.latency) / instances


AnyPace = Pace | MeanPace


def cold_pace(setting: ProtocolSetting) -> AnyPace:
    """Return the pace before the first measurement."""
    if setting.pace == "median":
        return Pace.cold(setting)
    default, fixed = setting.default_pass, setting.interval
    interval = (default + setting.latency) / setting.num_instances if fixed is None else fixed
    return MeanPace((), 0, default, interval)
