"""What can be asked, and the parts that each question is made of; a part and a seed are a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lbopt.studies.staggered.contenders import CONTENDERS, IMMEDIATE
from lbopt.studies.staggered.items import fleet, law, load, needs

if TYPE_CHECKING:
    from lbopt.studies.staggered.config import StaggeredConfig

Part = dict[str, Any]
#: Items that go through fleets or laws of a pass run so many times fewer requests of an instance.
_LESS = 4
_ITEMS = "lbopt.studies.staggered.items"


@dataclass(frozen=True, slots=True)
class Item:
    """A question: the module that answers a part of it, and its parts."""

    module: str
    parts: Callable[[StaggeredConfig], Iterable[Part]]

    @property
    def function(self) -> str:
        """The function that a task names."""
        return f"{_ITEMS}.{self.module}:measure"


def _law(config: StaggeredConfig) -> Iterable[Part]:
    return ({"instances": N, "requests": config.waits} for N in law.FLEETS)


def _load(config: StaggeredConfig) -> Iterable[Part]:
    more = {"instances": config.instances, "requests": config.requests, "loads": list(load.LOADS)}
    return ({"place": place, "against": against, **more} for place in config.places for against in IMMEDIATE)


def _fleet(config: StaggeredConfig) -> Iterable[Part]:
    return (
        {"place": place, "against": against, "instances": N, "requests": config.requests // _LESS}
        for place in config.places
        if place.startswith("short-3k")
        for against in IMMEDIATE
        for N in fleet.FLEETS
    )


def _limit(config: StaggeredConfig) -> Iterable[Part]:
    more = {"instances": config.instances, "requests": config.requests}
    return ({"place": place, "contender": contender, **more} for place in config.places for contender in CONTENDERS)


def _split(config: StaggeredConfig) -> Iterable[Part]:
    return ({"place": place, "instances": config.instances, "requests": config.requests} for place in config.places)


def _needs(config: StaggeredConfig) -> Iterable[Part]:
    plain = {"reading": "unit, instance", "law": "fullest", "fixed": 0.0, "spread": 1.0, "instances": 3}
    varied = [plain | {"reading": reading} for reading in needs.READINGS]
    varied += [
        plain | {"law": "mean", "fixed": fixed, "spread": spread, "instances": N}
        for fixed in needs.FIXED
        for spread in needs.SPREADS
        for N in needs.FLEETS
    ]
    varied += [plain | {"law": "mean", "fixed": fixed, "instances": needs.LARGE_FLEET} for fixed in needs.FIXED[1:]]
    varied += [plain | {"fixed": fixed, "instances": N} for fixed in needs.FIXED[1:] for N in needs.FLEETS]
    return (
        {**one, "place": place, "requests": config.requests // _LESS}
        for one in varied
        for place in needs.PRINTED_PLACES
        if place in config.places
    )


ITEMS: dict[str, Item] = {
    "law": Item("law", _law),
    "load": Item("load", _load),
    "fleet": Item("fleet", _fleet),
    "limit": Item("limit", _limit),
    "split": Item("split", _split),
    "needs": Item("needs", _needs),
}
