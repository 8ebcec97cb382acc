"""What a gap study of prefill batches is asked to do, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.prefill import PrefillSetting, make_allocation
from lbopt.prefill.exact.gap import RULES
from lbopt.solvers import check_solver
from lbopt.solvers.registry import require
from lbopt.studies.configuration import Configuration, Option, Without
from lbopt.studies.requests import RequestSource

DEFAULT_BEHAVIOURS = ("pbaa", "round-robin")
DEFAULT_RULES = RULES
DEFAULT_LOAD = 0.8
DEFAULT_TIME_LIMIT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesConfig(Configuration):
    """Configuration of a gap study of prefill batches: prompts arrive at random times, as they come.

    Batches are sampled under each behaviour. `load` is a share of the rate at which prompts of mean length fill every
    chunk of passes that follow each other. Both optima of a batch have `time_limit` seconds each.
    """

    what = "prefill batches"

    requests: Annotated[RequestSource, Without.of("arrival_column", "train_share", "train_on")] = field(
        default_factory=RequestSource
    )
    behaviours: Annotated[
        tuple[str, ...],
        Option(
            "Allocation under which batches are sampled; may be given again.",
            key="behaviour",
            each=make_allocation,
        ),
    ] = DEFAULT_BEHAVIOURS
    rules: Annotated[
        tuple[str, ...],
        Option(
            "Allocation to judge; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            first=True,
            each=make_allocation,
        ),
    ] = DEFAULT_RULES
    states: Annotated[int, Option("Batches per behaviour.", first=True, low=1)] = 50
    instances: Annotated[int, Option("Number of prefill instances.")] = 3
    units: Annotated[int, Option("Units of an instance.", names=("--workers", "-G"), key="workers", first=True)] = 8
    chunk: Annotated[int, Option("Most tokens of a unit in a pass.")] = 3072
    load: Annotated[
        float,
        Option(
            "Rate of random arrivals, as a share of that which fills every chunk.",
            low=0,
            high=math.inf,
            open=True,
            expected="a share above 0, such as 0.8 of full chunks",
        ),
    ] = DEFAULT_LOAD
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0
    time_limit: Annotated[float | None, Option("Seconds for each of the two optima.", first=True)] = DEFAULT_TIME_LIMIT

    def check(self) -> None:
        """Call allocations by their full names, and refuse what cannot be run or solved."""
        for name in ("behaviours", "rules"):
            names = tuple(make_allocation(spec).name for spec in getattr(self, name))
            if (doubled := repeated(names)) is not None:
                raise InputError(f"allocation '{doubled}' is named twice among the {name}")
            object.__setattr__(self, name, names)
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
