"""What a gap study of prefill batches is asked to do, as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.prefill import PrefillSetting, make_allocation
from lbopt.prefill.exact.gap import RULES
from lbopt.solvers import check_solver
from lbopt.solvers.registry import require
from lbopt.studies.configuration import Option, Without, from_plain
from lbopt.studies.requests import RequestSource

DEFAULT_BEHAVIOURS = ("pbaa", "round-robin")
DEFAULT_RULES = RULES
DEFAULT_LOAD = 0.8
DEFAULT_TIME_LIMIT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesConfig:
    """Configuration of a gap study of prefill batches.

    Parameters
    ----------
    requests
        Whose prompts arrive, as they come, at random times.
    behaviours
        Allocations under which batches are sampled.
    rules
        Allocations that are judged on every batch.
    states
        Batches per behaviour.
    instances, units
        N instances of D units.
    chunk
        Most tokens of a unit in a pass.
    load
        Share of the rate at which prompts of mean length fill every chunk of passes that follow each other.
    seed
        Of arrivals, first phases and the sample.
    time_limit
        Seconds for each of the two optima of a batch; None = no limit.
    """

    requests: Annotated[RequestSource, Without.of("arrival_column", "train_share", "train_on")] = field(
        default_factory=RequestSource
    )
    behaviours: Annotated[
        tuple[str, ...],
        Option("Allocation under which batches are sampled; may be given again.", key="behaviour", panel="Policies"),
    ] = DEFAULT_BEHAVIOURS
    rules: Annotated[
        tuple[str, ...],
        Option(
            "Allocation to judge; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            panel="Policies",
            first=True,
        ),
    ] = DEFAULT_RULES
    states: Annotated[int, Option("Batches per behaviour.", first=True)] = 50
    instances: Annotated[int, Option("Number of prefill instances.", panel="Prefill side")] = 3
    units: Annotated[
        int, Option("Units of an instance.", names=("--workers", "-G"), key="workers", panel="Fleet", first=True)
    ] = 8
    chunk: Annotated[int, Option("Most tokens of a unit in a pass.", panel="Prefill side")] = 3072
    load: Annotated[
        float, Option("Rate of random arrivals, as a share of that which fills every chunk.", panel="Fleet")
    ] = DEFAULT_LOAD
    seed: Annotated[int, Option("First seed.", first=True)] = 0
    time_limit: Annotated[float | None, Option("Seconds for each of the two optima.", panel="Optimum", first=True)] = (
        DEFAULT_TIME_LIMIT
    )

    def __post_init__(self) -> None:
        for name in ("behaviours", "rules"):
            object.__setattr__(self, name, _named_once(name, getattr(self, name)))
        if self.states < 1:
            raise InputError(f"states is {self.states}; expected at least 1")
        if not (math.isfinite(self.load) and self.load > 0):
            raise InputError(f"load is {self.load}; expected a share above 0, such as 0.8 of full chunks")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected 0 or more")
        check_solver("exact", self.time_limit)
        require("cp-sat")  # the best fill is its
        for behaviour in self.behaviours:
            self.setting(behaviour)

    def setting(self, behaviour: str) -> PrefillSetting:
        """Return the fleet of a behaviour."""
        return PrefillSetting(self.instances, self.units, "staggered", behaviour, chunk_tokens=self.chunk)

    def rate(self, mean_prompt: float) -> float:
        """Return the requests per second of this load."""
        return self.load * self.setting(self.behaviours[0]).saturating_rate(mean_prompt)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        data = {one.name: getattr(self, one.name) for one in fields(self)}
        return data | {
            "requests": self.requests.describe(),
            "behaviours": list(self.behaviours),
            "rules": list(self.rules),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> BatchesConfig:
        """Rebuild a configuration."""
        parts = {"requests": RequestSource.of}
        return from_plain(cls, data, what="prefill batches", source=source, parts=parts)


def _named_once(what: str, specs: Iterable[str]) -> tuple[str, ...]:
    names = [make_allocation(spec).name for spec in specs]
    if not names:
        raise InputError(f"no {what} given; expected at least one")
    if (doubled := repeated(names)) is not None:
        raise InputError(f"allocation '{doubled}' is named twice among the {what}")
    return tuple(names)
