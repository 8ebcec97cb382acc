"""Limits that users of a service are promised, and which requests were served within them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.spec import duration, options_of

if TYPE_CHECKING:
    from lbopt.simulator.run import Run


@dataclass(frozen=True, slots=True)
class Slo:
    """Largest time per output token and largest time to the first token, seconds; None = no limit.

    Parameters
    ----------
    tpot
        (finish - start) / output of a request at most.
    ttft
        From the arrival of a request to the end of its first step at most.
    """

    tpot: float | None = None
    ttft: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("tpot", self.tpot), ("ttft", self.ttft)):
            if limit is not None and not 0 < limit < math.inf:
                raise InputError(f"slo: {name} is {limit:g} s; expected more than 0 seconds")
        if self.tpot is None and self.ttft is None:
            raise InputError("slo names no limit; expected for example tpot=50ms,ttft=2s")

    def describe(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def kept(self, run: Run) -> NDArray[np.bool_]:
        """Return which requests of a run were served within the limits, bool (N,)."""
        request = run.requests
        kept = np.ones(len(run.trace), dtype=np.bool_)
        if self.tpot is not None:
            kept &= request["finish_clock"] - request["start_clock"] <= self.tpot * run.trace.output
        if self.ttft is not None:
            kept &= request["first_token_clock"] - request["reveal_clock"] <= self.ttft
        return kept


def make_slo(text: str) -> Slo:
    """Read ``tpot=50ms,ttft=2s``; one of them may be left out.

    Raises
    ------
    InputError
        If a limit is unknown, or no duration.

    Examples
    --------
    >>> from lbopt.simulator import make_slo
    >>> make_slo("tpot=50ms").tpot
    0.05
    """

    def built(tpot: str | None = None, ttft: str | None = None) -> Slo:
        limits = {
            name: None if given is None else duration(f"slo: {name}", given)
            for name, given in (("tpot", tpot), ("ttft", ttft))
        }
        return Slo(**limits)

    return built(**options_of("setting", "slo", text, built))
