"""What a staggering study is asked to do, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

import lbopt
from lbopt.exceptions import InputError
from lbopt.runner import Task
from lbopt.spec import unknown
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.staggered.contenders import HELD_BACK, IMMEDIATE
from lbopt.studies.staggered.places import PLACES
from lbopt.studies.staggered.plan import ITEMS

#: Fewer requests of an instance than this are a minute of traffic, in which nothing settles.
FEWEST_REQUESTS = 500
#: Fewer waits than this have no 99 % quantile worth the name.
FEWEST_WAITS = 1000
#: Fields that files of earlier versions do not have, and their values there.
_LATER: dict[str, Any] = {"sending": "printed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StaggeredConfig:
    """Configuration of a staggering study.

    Parameters
    ----------
    items
        Names from `ITEMS`; none = all.
    places
        Names from `PLACES`.
    instances
        N, of the items that do not go through fleets.
    requests
        Of an instance, in a run.
    waits
        Requests of a run of item ``law``.
    sending
        When batches are sent in items load, fleet, limit and latency: ``printed``, ``ahead`` of the end of a pass, or
        ``both``.
    seeds, seed
        Draws of prompts, gaps and phases, and the first of them.
    """

    items: Annotated[
        tuple[str, ...],
        Option(
            "law, load, fleet, limit, latency, ahead, split, needs, adapting, watchdog, decode, cache, faults.",
            argument=True,
            shown="all",
        ),
    ] = ()
    places: Annotated[
        tuple[str, ...],
        Option("**short-3k**, **short-5k** or **long-16k**; may be given again.", key="place", shown="all"),
    ] = tuple(PLACES)
    instances: Annotated[int, Option("Prefill instances, where the item does not go through fleets.")] = 3
    requests: Annotated[int, Option("Requests of an instance in a run.")] = 10_000
    waits: Annotated[int, Option("Requests of a run of item law.")] = 200_000
    sending: Annotated[
        str, Option("When items load, fleet, limit and latency send: **printed**, **ahead** or **both**.")
    ] = "printed"
    seeds: Annotated[int, Option("Draws of prompts, gaps and phases; intervals need two.")] = 10
    seed: Annotated[int, Option("First seed.", first=True)] = 0

    def __post_init__(self) -> None:
        for item in self.items:
            if item not in ITEMS:
                raise unknown("item", item, ITEMS)
        object.__setattr__(self, "items", tuple(item for item in ITEMS if item in self.items or not self.items))
        for place in self.places:
            if place not in PLACES:
                raise unknown("place", place, PLACES)
        object.__setattr__(self, "places", tuple(place for place in PLACES if place in self.places))
        if self.sending not in HELD_BACK:
            raise unknown("sending", self.sending, HELD_BACK)
        least = {"instances": 1, "requests": FEWEST_REQUESTS, "waits": FEWEST_WAITS, "seeds": 1, "seed": 0}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least {value}")
        if self.instances > 256:
            raise InputError(f"instances is {self.instances}; expected 1 to 256")

    @property
    def held_back(self) -> tuple[str, ...]:
        """The rules that hold requests back, of the chosen reading."""
        return HELD_BACK[self.sending]

    @property
    def contenders(self) -> tuple[str, ...]:
        """These rules and those that bind on arrival."""
        return (*IMMEDIATE, *self.held_back)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(range(self.seed, self.seed + self.seeds))

    def tasks(self, item: str) -> list[Task]:
        """Return the tasks of an item, seed by seed."""
        function = ITEMS[item].function
        parts = [part | {"version": lbopt.__version__} for part in ITEMS[item].parts(self)]
        return [Task(function, part, seed) for seed in self.all_seeds for part in parts]

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if name not in _LATER or value != _LATER[name]}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> StaggeredConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="a staggering study", source=source, later=_LATER)
