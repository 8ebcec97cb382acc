"""What a locality study is asked to do, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import lbopt
from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.instances.families.experts import expert_workload
from lbopt.runner import Task
from lbopt.spec import unknown
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.locality.laws import law_of
from lbopt.studies.locality.plan import ITEMS, USUAL_ITEMS, PlannedRun, plan_of

WORKLOADS = ("task", "language")
CELL = "lbopt.studies.locality.cell:measure"
#: Fewer calibration prompts than this make clusters of 24 workers of a few prompts each.
FEWEST_PROMPTS = 100
#: Fewer requests than this have no 99 % quantile worth the name.
FEWEST_REQUESTS = 50
#: Fields that version 0.1.0 had not, and what stands for them in its files.
_LATER: dict[str, Any] = {"laws": ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalityConfig:
    """Configuration of a locality study.

    Parameters
    ----------
    items
        Names from `ITEMS`; none = those of `USUAL_ITEMS`.
    workloads
        "task", "language", or both.
    rates
        Requests a second at which the routers are compared; 60 stands for all where one is enough.
    seconds, warm_up
        Length of the arrivals, and how much of it is not looked at.
    prompts
        Prompts that requests repeat, and as many others that tables are fitted to.
    layers
        Layers of the model that are drawn.
    seeds, seed
        Worlds, each with its own gates and requests, and the first of them.
    laws
        More step times under which the routers are compared, by their names (`laws.law_of`).
    """

    items: Annotated[
        tuple[str, ...],
        Option(
            "signatures, routers, band, clusters, pool, barrier; or first-token, cache, models, large, constants.",
            argument=True,
            shown="the first six",
        ),
    ] = ()
    workloads: Annotated[
        tuple[str, ...], Option("**task** or **language**; may be given again.", key="workload", shown="both")
    ] = WORKLOADS
    rates: Annotated[tuple[float, ...], Option("Requests a second of routers and pool; may be given again.")] = (
        20.0,
        40.0,
        60.0,
        80.0,
        100.0,
    )
    seconds: Annotated[
        float, Option("Length of the arrivals. A request takes 5 to 15 s: shorter runs never fill up.")
    ] = 120.0
    warm_up: Annotated[float, Option("First seconds that are not counted.")] = 30.0
    prompts: Annotated[int, Option("Prompts that requests repeat, and as many others that tables are fitted to.")] = (
        1000
    )
    layers: Annotated[int, Option("Layers of the model that are drawn.")] = 6
    seeds: Annotated[int, Option("Worlds, each with its own gates and requests; intervals need two.")] = 20
    seed: Annotated[int, Option("First seed.", first=True)] = 0
    laws: Annotated[
        tuple[str, ...],
        Option(
            "Another step time under which routers are compared, such as other=2ms,request=10us; may be given again.",
            key="law",
        ),
    ] = ()

    def __post_init__(self) -> None:
        for item in self.items:
            if item not in ITEMS:
                raise unknown("item", item, ITEMS)
        object.__setattr__(self, "items", tuple(item for item in ITEMS if item in (self.items or USUAL_ITEMS)))
        for workload in self.workloads:
            if workload not in WORKLOADS:
                raise unknown("workload", workload, WORKLOADS)
        object.__setattr__(self, "workloads", tuple(dict.fromkeys(self.workloads)))
        object.__setattr__(self, "rates", tuple(sorted(dict.fromkeys(float(rate) for rate in self.rates))))
        if not self.rates or not all(0 < rate < 1e6 for rate in self.rates):
            raise InputError(
                f"rates are {', '.join(map(str, self.rates)) or 'none'}; expected requests a second, above 0"
            )
        if not 0 <= self.warm_up < self.seconds < float("inf"):
            raise InputError(f"the warm-up takes {self.warm_up:g} s of {self.seconds:g} s; expected less than all")
        counted_seconds = self.seconds - self.warm_up
        counted = self.rates[0] * counted_seconds
        if counted < FEWEST_REQUESTS:
            raise InputError(
                f"at {self.rates[0]:g} requests a second some {counted:.2g} come in the {counted_seconds:g} s "
                f"after the warm-up; expected at least {FEWEST_REQUESTS}: give more seconds, or higher rates"
            )
        if self.prompts < FEWEST_PROMPTS:
            raise InputError(f"prompts is {self.prompts}; expected at least {FEWEST_PROMPTS}")
        for name in ("layers", "seeds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least 1")
        object.__setattr__(self, "laws", tuple(dict.fromkeys(self.laws)))
        for law in self.laws:
            if not law or set(law) & set(" \t\n"):
                raise InputError(f"law is {shown(law)}; expected a name without spaces, such as other=2ms,request=10us")
            law_of(law)
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected 0 or more")

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The worlds."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """What is simulated in every world, each once."""
        return plan_of(self.items, self.rates, self.laws)

    def task(self, workload: str, seed: int) -> Task:
        """Return the task of one world."""
        given = {
            "workload": workload,
            "runs": [run.key for run in self.runs],
            "signatures": "signatures" in self.items,
            "seconds": self.seconds,
            "warm_up": self.warm_up,
            "prompts": self.prompts,
            "law": asdict(expert_workload(f"moe-{workload}").law),
            "layers": self.layers,
            "version": lbopt.__version__,
        }
        return Task(CELL, given, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data, without fields that version 0.1.0 had not where they ask nothing."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if name not in _LATER or value != _LATER[name]}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> LocalityConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="a locality study", source=source, later=_LATER)
