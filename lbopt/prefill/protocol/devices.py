"""The instances of a world: units, chunk, the law of a pass, when a pass starts, and until when each is busy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lbopt.exceptions import InputError
from lbopt.prefill.pass_time import PassTime
from lbopt.prefill.protocol.engine import Engine, PassLoad

#: A limit that nobody reaches.
NO_LIMIT = 2**50


@dataclass(frozen=True, slots=True)
class Devices:
    """All instances are alike.

    Parameters
    ----------
    chunk, capacity
        Most tokens and requests of a unit in a pass; None = no limit.
    units
        Of an instance.
    pass_time
        The law of a pass, s.
    engine
        See `lbopt.prefill.setting.ENGINES`.
    phases
        s, until when each instance is busy with an empty pass at the start; empty = none is.
    """

    chunk: int | None = None
    capacity: int | None = None
    units: int = 1
    pass_time: PassTime | Callable[[PassLoad], float] = field(default_factory=PassTime)
    engine: Literal["work-conserving", "back-to-back"] = "work-conserving"
    phases: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("chunk", "capacity"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} is {value}; expected more than 0")
        if self.units < 1:
            raise InputError(f"units is {self.units}; expected at least 1")

    def built(self, ordered: bool = True) -> Engine:
        """Return an instance that has nothing to do."""
        return Engine(self.chunk or NO_LIMIT, self.units, self.capacity or NO_LIMIT, ordered)

    def seconds(self, load: PassLoad) -> float:
        """Return how long a pass takes, s."""
        law = self.pass_time
        if not isinstance(law, PassTime):
            return law(load)
        return law.seconds(load.fullest, load.longest, load.total / self.units)

    def passes(self, tokens: int) -> int:
        """Return how many passes a prompt takes at most that a unit computes alone."""
        return -(-tokens // (self.chunk or NO_LIMIT))

    def phase(self, g: int) -> float:
        """Return until when instance `g` is busy at the start, s."""
        return float(np.asarray(self.phases)[g]) if self.phases else 0.0
