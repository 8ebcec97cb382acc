"""How old what routers see is: `Telemetry`, and the text in which users write it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.spec import duration, options_of

#: What a front end adds to the last report by itself.
OWN = ("optimistic", "none")

#: Reports at most this often, s, unless they come with every step; a run would be all reports.
_OFTEN = 1e-3


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Routers see the last report of each worker, and what they sent it since.

    Parameters
    ----------
    period
        Seconds between reports of a worker; 0 = a report before every decision.
    own
        "optimistic": a front end adds what it sends to a worker until the next report of it; "none": it does not.
    jitter
        Each period is longer or shorter by up to this share, evenly distributed; 0 to 1.
    lost
        Chance that a report does not arrive; 0 to below 1.
    front_ends
        Routers that do not see what the others send: request i comes in through front end i mod C.
    """

    period: float = 0.1
    own: str = "optimistic"
    jitter: float = 0.0
    lost: float = 0.0
    front_ends: int = 1

    def __post_init__(self) -> None:
        if not (self.period == 0 or _OFTEN <= self.period < math.inf):
            raise InputError(f"telemetry: period is {self.period:g} s; expected 0 (every decision) or 0.001 s and more")
        if self.own not in OWN:
            raise InputError(f"telemetry: own is {shown(self.own)}; expected {' or '.join(OWN)}")
        if not 0 <= self.jitter <= 1:
            raise InputError(f"telemetry: jitter is {self.jitter:g}; expected a share of the period from 0 to 1")
        if not 0 <= self.lost < 1:
            raise InputError(f"telemetry: lost is {self.lost:g}; expected a chance from 0 to below 1")
        if not 1 <= self.front_ends <= 10_000:
            raise InputError(f"telemetry: front_ends is {self.front_ends}; expected 1 to 10,000 routers")

    def describe(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def make_telemetry(text: str) -> Telemetry:
    """Read ``period=100ms,own=none,jitter=0.1,lost=0.01,front_ends=4``; what is left out is the default.

    Raises
    ------
    InputError
        If an option or a value is unknown.

    Examples
    --------
    >>> from lbopt.simulator import make_telemetry
    >>> make_telemetry("period=20ms,front_ends=4").period
    0.02
    """

    def built(
        period: str = "100ms", own: str = "optimistic", jitter: float = 0.0, lost: float = 0.0, front_ends: int = 1
    ) -> Telemetry:
        return Telemetry(duration("telemetry: period", period), own, jitter, lost, front_ends)

    return built(**options_of("setting", "telemetry", text, built))
