"""Rows that are made up: the report and the questions of the staggering study are tested with them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from lbopt.studies.staggered import CONTENDERS, ITEMS, LATE, STAGGERED, Rows, StaggeredConfig, StaggeredOutcome
from lbopt.studies.staggered.items import ahead, fleet, law, split
from lbopt.studies.staggered.places import AHEAD, LOADS

SERVED = (
    *("ttft", "ttft_p50", "ttft_p95", "ttft_p99", "wait", "at_scheduler", "on_device"),
    *("utilisation", "cycle", "passes_per_request", "idle"),
)


def keys_of(item: str, part: dict[str, Any]) -> list[dict[str, Any]]:
    """The keys of the rows that a part of an item answers with."""
    if item == "law":
        loads: list[tuple[Any, float]] = [("none", load) for load in law.LOADS]
        loads += [(law.CAPACITY, law.CAPACITY * share) for share in law.SHARES]
        return [
            {"instances": part["instances"], "capacity": capacity, "load": load, "policy": policy}
            for (capacity, load), policy in product(loads, law.POLICIES)
        ]
    if item in ("load", "fleet"):
        of_place = {key: part[key] for key in ("place", "against")}
        more = {"instances": part["instances"]} if item == "fleet" else {}
        loads_of = part["loads"] if item == "load" else [fleet.LOAD]
        return [
            {**more, **of_place, "load": load, "contender": contender}
            for load, contender in product(loads_of, (part["against"], *part.get("rules", LATE)))
        ]
    if item == "latency":
        return [{"place": part["place"], "latency": part["latency"], "contender": part["contender"]}]
    if item == "limit":
        return [{"place": part["place"], "contender": part["contender"]}]
    if item == "split":
        return [
            {"place": part["place"], "binding": binding, "allocation": allocation}
            for binding, allocation in product(split.BINDINGS, split.ALLOCATIONS)
            if binding != "on arrival" or not allocation.startswith("pbaa")
        ]
    assert item == "ahead", item
    waiting = ahead.WAITING if part["latency"] else ("pooled", *STAGGERED)
    return [
        {"fleet": part["fleet"], "latency": part["latency"], "load": load, "contender": contender}
        for load, contender in product(LOADS, (*ahead.BASELINES, *waiting, *AHEAD))
    ]


def rows_of(item: str, config: StaggeredConfig, seed: int) -> Rows:
    """The rows of an item and seed, of the shape of its module's; numbers are drawn."""
    rng, rows = np.random.default_rng([seed, *item.encode()]), Rows()
    for part in ITEMS[item](config):
        for keys in keys_of(item, dict(part)):
            if item == "law":
                values: dict[str, float | None] = {
                    of: float(rng.uniform(0.1, 0.5)) for of in ("wait", "wait_p99", "at_scheduler", "on_device")
                }
                known = law.expected(keys["policy"], keys["load"], keys["instances"])
                values["expected"] = known if keys["capacity"] == "none" else None
            else:
                values = {"rate": float(rng.uniform(50, 80))} | {of: float(rng.uniform(0.3, 0.9)) for of in SERVED}
            rows.add([(keys, values)])
    return rows


#: Items whose rows can be made up here.
KNOWN = ("law", "load", "fleet", "limit", "latency", "ahead", "split")


def made_up(*items: str, seeds: int = 3, **settings: Any) -> StaggeredOutcome:
    """An outcome of so many seeds."""
    config = StaggeredConfig(items=items or KNOWN, seeds=max(1, seeds), **settings)
    found = StaggeredOutcome(config, notes=["a note"], seconds=1.5)
    for item in config.items:
        if seeds and any(True for _ in ITEMS[item](config)):
            found.rows[item] = {seed: rows_of(item, config, seed) for seed in range(seeds)}
    return found


def load_rows(values: dict[str, float], of: str = "ttft", place: str = "short-3k", against: str = "jsq") -> Rows:
    """Rows of item load in which every load has these values of one quantity, by contender."""
    rows = Rows()
    for load, (contender, value) in product(StaggeredConfig().tasks("load")[0].parameters["loads"], values.items()):
        assert contender in CONTENDERS
        rows.add([({"place": place, "against": against, "load": load, "contender": contender}, {of: value})])
    return rows


def outcome_of(item: str, *seeds: list[tuple[dict[str, Any], dict[str, float | None]]]) -> StaggeredOutcome:
    """An outcome of an item, from the rows of each seed."""
    found = StaggeredOutcome(StaggeredConfig(items=(item,)), {item: {}})
    for seed, these in enumerate(seeds):
        found.rows[item][seed] = Rows()
        found.rows[item][seed].add(these)
    return found
