"""What can be asked, and the parts that each question is made of; a part and a seed are a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lbopt.studies.staggered.classes import CLASSES, LATENCIES
from lbopt.studies.staggered.contenders import AHEAD, IMMEDIATE
from lbopt.studies.staggered.items import (
    adapting,
    ahead,
    cache,
    decode,
    faults,
    fleet,
    latency,
    law,
    load,
    needs,
    watchdog,
)
from lbopt.studies.staggered.places import PLACES, UNITS

if TYPE_CHECKING:
    from lbopt.studies.staggered.config import StaggeredConfig

Part = dict[str, Any]
#: Items that go through fleets or laws of a pass run so many times fewer requests of an instance.
_LESS = 4
_ITEMS = "lbopt.studies.staggered.items"
#: Entries of a table of hits, one for each request and unit of the fleet.
_MOST_HITS = 2**24


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
    return _in_reading(
        config, [{"place": place, "against": against, **more} for place in config.places for against in IMMEDIATE]
    )


def _in_reading(config: StaggeredConfig, parts: list[Part]) -> Iterable[Part]:
    """Return the parts for the rules as printed, which name no rules, and those for rules that send ahead."""
    printed = parts if config.sending != "ahead" else []
    return [*printed, *({**part, "rules": list(AHEAD)} for part in parts if config.sending != "printed")]


def _fleet(config: StaggeredConfig) -> Iterable[Part]:
    parts = [
        {"place": place, "against": against, "instances": N, "requests": config.requests // _LESS}
        for place in config.places
        if place.startswith("short-3k")
        for against in IMMEDIATE
        for N in fleet.FLEETS
    ]
    return _in_reading(config, parts)


def _limit(config: StaggeredConfig) -> Iterable[Part]:
    more = {"instances": config.instances, "requests": config.requests}
    return (
        {"place": place, "contender": contender, **more} for place in config.places for contender in config.contenders
    )


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


def _adapting(config: StaggeredConfig) -> Iterable[Part]:
    return (
        {"change": name, "place": place, "instances": config.instances, "requests": config.requests}
        for place in config.places
        if place == "short-3k"
        for name, change in adapting.CHANGES.items()
        if config.instances > max(change.less)
    )


def _watchdog(config: StaggeredConfig) -> Iterable[Part]:
    requests = min(config.requests * config.instances, watchdog.REQUESTS)
    return ({"faults": name, "instances": config.instances, "requests": requests} for name in watchdog.FAULTS)


def _decode(config: StaggeredConfig) -> Iterable[Part]:
    # exact programs make these runs the dearest ones
    requests = max(4 * config.requests // 5, decode.FEWEST_REQUESTS)
    return ({"arrivals": arrivals, "requests": requests} for arrivals in decode.ARRIVALS)


def _cache(config: StaggeredConfig) -> Iterable[Part]:
    requests = min(config.requests, _MOST_HITS // (config.instances**2 * UNITS))
    more = {"instances": config.instances, "requests": requests}
    return ({"place": place, "shared": shared, **more} for place in config.places for shared in cache.SHARED)


def _latency(config: StaggeredConfig) -> Iterable[Part]:
    return ({"latency": seconds, **part} for seconds in latency.LATENCIES for part in _limit(config))


def _ahead(config: StaggeredConfig) -> Iterable[Part]:
    requests = max(config.requests // _LESS, ahead.FEWEST_REQUESTS)
    fleets = [name for name in CLASSES if name in config.places or name not in PLACES]
    return ({"fleet": name, "latency": seconds, "requests": requests} for name in fleets for seconds in LATENCIES)


def _faults(config: StaggeredConfig) -> Iterable[Part]:
    more = {"instances": config.instances, "requests": min(config.requests, faults.MOST_REQUESTS)}
    return ({"place": place, "faults": name, **more} for place in config.places for name in faults.FAULTS)


ITEMS: dict[str, Item] = {
    "law": Item("law", _law),
    "load": Item("load", _load),
    "fleet": Item("fleet", _fleet),
    "limit": Item("limit", _limit),
    "latency": Item("latency", _latency),
    "ahead": Item("ahead", _ahead),
    "split": Item("split", _split),
    "needs": Item("needs", _needs),
    "adapting": Item("adapting", _adapting),
    "watchdog": Item("watchdog", _watchdog),
    "decode": Item("decode", _decode),
    "cache": Item("cache", _cache),
    "faults": Item("faults", _faults),
}
