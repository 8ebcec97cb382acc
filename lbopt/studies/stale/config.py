"""What a study of old sight is asked to do, as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import lbopt
from lbopt.exceptions import InputError
from lbopt.policies import foresight_of, make_policy
from lbopt.policies.editions import spelled_out
from lbopt.runner import Task
from lbopt.simulator import Telemetry
from lbopt.studies.option import Option
from lbopt.studies.plain import from_plain
from lbopt.studies.requests import RequestSource

DEFAULT_WORKERS = (8,)
DEFAULT_PERIODS = (0.02, 0.1, 0.5, 2.0, 10.0)
DEFAULT_POLICIES = ("round-robin", "power-of-two", "vllm", "jsq-load:admission=immediate", "br-0", "auto")
SIGHTS = {"counts": "optimistic", "blind": "none"}

CELL = "lbopt.studies.stale.cell:measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleConfig:
    """Configuration of a study of old sight.

    Parameters
    ----------
    requests
        Which requests.
    workers
        Numbers of workers.
    slots
        Slots of a worker.
    periods
        Seconds between reports; the truth is always run beside them.
    sight
        "counts": a front end adds what it sends until the next report; "blind": it does not. Rules with a pool always
        add.
    policies
        Rules without a window.
    load
        Share of saturation at which requests come, by the trace's times or, where it has none, by Poisson's law;
        None = a closed loop, of which the law says nothing.
    seed
        Of requests and rules.
    """

    requests: RequestSource = field(default_factory=RequestSource)
    workers: Annotated[
        tuple[int, ...], Option("Number of workers; may be given again.", names=("--workers", "-G"), first=True)
    ] = DEFAULT_WORKERS
    slots: Annotated[int, Option("Slots per worker.", names=("--slots", "-B"), first=True)] = 72
    periods: Annotated[
        tuple[float, ...],
        Option("Seconds between reports; may be given again.", names=("--period",), key="period", first=True),
    ] = DEFAULT_PERIODS
    sight: Annotated[
        str, Option("**counts**: a front end adds what it sends; **blind**: nothing between reports.", first=True)
    ] = "counts"
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Rule without a window; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            first=True,
            shown="round-robin, power-of-two, vllm, jsq-load on arrival, br-0, auto",
        ),
    ] = DEFAULT_POLICIES
    load: Annotated[
        float | None, Option("Requests come at this share of saturation.", shown="closed loop", first=True)
    ] = None
    seed: Annotated[int, Option("First seed.", first=True)] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", tuple(sorted(dict.fromkeys(self.workers))))
        if not self.workers or not 2 <= self.workers[0] <= self.workers[-1] <= 4096:
            raise InputError(f"workers are {', '.join(map(str, self.workers)) or 'none'}; expected 2 to 4,096 each")
        if not 1 <= self.slots <= 100_000:
            raise InputError(f"slots is {self.slots}; expected 1 to 100,000")
        object.__setattr__(self, "periods", tuple(sorted(dict.fromkeys(float(period) for period in self.periods))))
        if not self.periods:
            raise InputError("no period was named; give at least one, in seconds")
        for period in self.periods:
            if not 0 < period < math.inf:
                raise InputError(f"period is {period:g} s; expected more than 0, the truth is run anyway")
            Telemetry(period)  # refuses one that is too short
        if self.sight not in SIGHTS:
            raise InputError(f"sight '{self.sight}' is unknown; expected {' or '.join(SIGHTS)}")
        if self.load is not None and not 0 < self.load < 100:
            raise InputError(f"load is {self.load}; expected a share of saturation such as 0.9")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected 0 or more")
        object.__setattr__(self, "policies", tuple(dict.fromkeys(self.policies)))
        if not self.policies:
            raise InputError("no policy was named; give at least one")
        for policy in self.policies:
            if foresight_of(make_policy(policy)) is not None:
                raise InputError(
                    f"policy '{policy}' looks ahead, and reports do not list running requests; "
                    "take a rule without a window"
                )

    def cells(self) -> Iterator[tuple[int, str, float | None]]:
        """Yield (G, policy, period), the truth first, as None."""
        for G in self.workers:
            for policy in self.policies:
                for period in (None, *self.periods):
                    yield G, policy, period

    def task(self, G: int, policy: str, period: float | None) -> Task:
        """Return the task of one run."""
        given: dict[str, Any] = {
            "requests": self.requests.describe(),
            "policy": spelled_out(policy),  # other processes do not know of editions
            "G": G,
            "B": self.slots,
            "load": self.load,
            "period": period,
            "own": SIGHTS[self.sight] if period is not None else SIGHTS["counts"],
            "version": f"{lbopt.__version__}, two floors",  # answers of before have one, which was not of any rule
        }
        return Task(CELL, given, self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"requests": self.requests.describe()}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> StaleConfig:
        """Rebuild a configuration."""
        parts = {"requests": RequestSource.of}
        return from_plain(cls, data, what="a study of old sight", source=source, parts=parts)
