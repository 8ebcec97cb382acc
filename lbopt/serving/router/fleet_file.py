"""The fleet file: which workers there are, which of them meet at a barrier, and which prefill instances feed them.

TOML. A `[[group]]` is a barrier group: a model, slots a worker, and its workers, each an address of its own or a rank
of a shared one. `[[prefiller]]`, where prefill and decode are apart, is one prefill instance of a model.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from lbopt.exceptions import InputError
from lbopt.files import called, listed, read_toml, repeated, shown
from lbopt.kinds import whole
from lbopt.serving.http_client import checked_url

#: Where workers may be that are added while the router runs, unless the fleet file says otherwise.
PRIVATE = ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_MOST_RANKS = 4096
_MOST_SLOTS = 1_000_000


@dataclass(frozen=True, slots=True)
class WorkerAddress:
    """Where a worker is: an address, and its rank where ranks share one."""

    name: str
    url: str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One barrier group of the file.

    Parameters
    ----------
    name, model
        The group, and the name under which clients ask for its model.
    slots
        Requests that a worker runs at once.
    workers
        Where its workers are.
    aliases
        Other names of the model.
    kv_capacity
        Tokens that a worker can hold; None where the file does not say.
    advised
        Whether a gateway forwards to its workers, which may have names alone.
    """

    name: str
    model: str
    slots: int
    workers: tuple[WorkerAddress, ...]
    aliases: tuple[str, ...] = ()
    kv_capacity: int | None = None
    advised: bool = False


@dataclass(frozen=True, slots=True)
class PrefillerPlan:
    """One prefill instance of the file."""

    name: str
    model: str
    url: str
    connector: str = "mooncake"
    threshold: float = 0.9
    most: int | None = None


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The whole file."""

    groups: tuple[GroupPlan, ...]
    prefillers: tuple[PrefillerPlan, ...] = ()
    allowed: tuple[str, ...] = PRIVATE
    allowed_hosts: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def read_fleet(path: str | os.PathLike[str]) -> FleetPlan:
    """Read a fleet file.

    Raises
    ------
    InputError
        Where it cannot be read, or holds a key or a value that cannot be.
    """
    source = f"fleet file '{called(path)}'"
    return fleet_of(read_toml(path, source), source)


def fleet_of(data: dict[str, Any], source: str = "the fleet") -> FleetPlan:
    """Return the fleet of plain data; `source` is what errors call it."""
    _refuse_others(data, ("group", "prefiller", "allowed", "allowed_hosts", "router"), source)
    groups = tuple(_group(table, i, source) for i, table in enumerate(_tables(data, "group", source)))
    if not groups:
        raise InputError(f"{source} has no [[group]]; expected at least one barrier group with its workers")
    _refuse_twice([group.name for group in groups], f"{source}: group")
    prefillers = tuple(_prefiller(t, i, source) for i, t in enumerate(_tables(data, "prefiller", source)))
    _refuse_twice([prefiller.name for prefiller in prefillers], f"{source}: prefiller")
    named = [(w, f"worker '{w.name}' of group '{g.name}'") for g in groups for w in g.workers]
    named += [(WorkerAddress(p.name, p.url, None), f"prefiller '{p.name}'") for p in prefillers]
    refuse_same(named, source)
    models = {group.model for group in groups}
    for group in groups:
        for other in groups:
            if other.model != group.model and {other.model, *other.aliases} & {group.model, *group.aliases}:
                raise InputError(
                    f"{source}: groups '{group.name}' and '{other.name}' serve different models under one name; give "
                    "each model and alias to one of them"
                )
        if any(other.model == group.model and other.advised != group.advised for other in groups):
            raise InputError(
                f"{source}: only some groups of model {shown(group.model)} are advised, so it is open who "
                "forwards a request; say `advised` of all or of none"
            )
    for prefiller in prefillers:
        if prefiller.model not in models:
            raise InputError(
                f"{source}: prefiller '{prefiller.name}' is for model {shown(prefiller.model)}; the groups serve "
                f"{listed(sorted(models))}"
            )
    allowed = _texts(data.get("allowed", list(PRIVATE)), "allowed", source)
    for network in allowed:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise InputError(f"{source}: allowed holds {shown(network)}: {error}; expected 10.0.0.0/8, say") from None
    options = data.get("router", {})
    if not isinstance(options, dict):
        raise InputError(f"{source}: router is {shown(options)}; expected a table of options")
    hosts = _texts(data.get("allowed_hosts", []), "allowed_hosts", source)
    return FleetPlan(groups, prefillers, allowed, hosts, options)


def refuse_same(named: list[tuple[WorkerAddress, str]], source: str) -> None:
    """Refuse engines that are named twice: their slots would be counted twice.

    Ranks share an address where each has its own number; one without a rank is the whole address.
    """
    seen: dict[str, list[tuple[int | None, str]]] = {}
    for address, name in named:
        if not address.url:
            continue
        for rank, other in seen.setdefault(address.url.lower(), []):
            if rank is None or address.rank is None or rank == address.rank:
                raise InputError(f"{source}: {other} and {name} are one engine, {address.url}; name it once")
        seen[address.url.lower()].append((address.rank, name))


def refuse_outside(url: str, plan: FleetPlan, what: str) -> None:
    """Refuse an address outside the ranges in which workers may be added."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if _HOST.fullmatch(host) and any(host == h or (h[:1] == "." and host.endswith(h)) for h in plan.allowed_hosts):
            return
        raise InputError(
            f"{what} is at the host {shown(host)}, which allowed_hosts of the fleet file does not name"
        ) from None
    if not any(address in ipaddress.ip_network(network) for network in plan.allowed):
        raise InputError(f"{what} is at {address}, outside the ranges of the fleet file: {listed(plan.allowed)}")


def worker_of(table: Any, index: int, what: str, *, is_advised: bool = False) -> WorkerAddress:
    """Return one worker of plain data.

    Parameters
    ----------
    table, index, what
        The data, its place in the list, and what errors call the group.
    is_advised
        Whether it is one of an advised group, which may have a name alone.

    Raises
    ------
    InputError
        Where it has no usable address, rank or name.
    """
    if isinstance(table, str):
        table = {"name" if is_advised and "://" not in table else "url": table}
    if not isinstance(table, dict):
        raise InputError(f"{what}: worker {index} is {shown(table)}; expected an address or a table with url")
    _refuse_others(table, ("name", "url", "rank"), f"{what}: worker {index}")
    if is_advised and "url" not in table:
        return WorkerAddress(_named(table.get("name"), f"{what}: name of worker {index}"), "")
    url = checked_url(table.get("url"), f"{what}: worker {index}")
    rank = table.get("rank")
    if rank is not None:
        rank = whole(f"{what}: rank of worker {index}", rank, 0, _MOST_RANKS)
    default = urlsplit(url).netloc.replace("[", "ip6-").replace("]", "") + ("" if rank is None else f"/{rank}")
    return WorkerAddress(_named(table.get("name", default), f"{what}: name of worker {index}"), url, rank)


def _group(table: dict[str, Any], index: int, source: str) -> GroupPlan:
    what = f"{source}: group {index}"
    known = ("name", "model", "aliases", "slots", "kv_capacity", "worker", "workers", "endpoint", "ranks", "advised")
    _refuse_others(table, known, what)
    name = _named(table.get("name", f"group-{index}"), f"{what}: name")
    what = f"{source}: group '{name}'"
    model = table.get("model")
    if not isinstance(model, str) or not model or len(model) > 200 or not model.isprintable():
        raise InputError(f"{what} has the model {shown(model)}; expected the name under which clients ask for it")
    advised = table.get("advised", False)
    if not isinstance(advised, bool):
        raise InputError(f"{what}: advised is {shown(advised)}; expected true or false")
    given = [*_list(table, "worker", what), *_list(table, "workers", what)]
    if "endpoint" in table:
        ranks = whole(f"{what}: ranks", table.get("ranks"), 1, _MOST_RANKS)
        given += [{"url": table["endpoint"], "rank": rank} for rank in range(ranks)]
    elif "ranks" in table:
        raise InputError(f"{what} has ranks and no endpoint; expected the address that the ranks share")
    workers = tuple(worker_of(entry, i, what, is_advised=advised) for i, entry in enumerate(given))
    if not workers and not advised:
        raise InputError(f'{what} has no worker; expected workers = ["http://host:port", ...], or endpoint and ranks')
    _refuse_twice([worker.name for worker in workers], f"{what}: worker")
    capacity = table.get("kv_capacity")
    return GroupPlan(
        name=name,
        model=model,
        slots=whole(f"{what}: slots", table.get("slots"), 1, _MOST_SLOTS),
        workers=workers,
        aliases=_texts(table.get("aliases", []), "aliases", what),
        kv_capacity=None if capacity is None else whole(f"{what}: kv_capacity", capacity, 1, 2**62),
        advised=advised,
    )


def _prefiller(table: dict[str, Any], index: int, source: str) -> PrefillerPlan:
    what = f"{source}: prefiller {index}"
    _refuse_others(table, ("name", "model", "url", "connector", "threshold", "most"), what)
    url = checked_url(table.get("url"), what)
    threshold = table.get("threshold", 0.9)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold <= 1:
        raise InputError(f"{what}: threshold is {shown(threshold)}; expected a share of the cache, above 0 and up to 1")
    most = table.get("most")
    return PrefillerPlan(
        name=_named(table.get("name", urlsplit(url).netloc), f"{what}: name"),
        model=str(table.get("model", "")),
        url=url,
        connector=_named(table.get("connector", "mooncake"), f"{what}: connector"),
        threshold=float(threshold),
        most=None if most is None else whole(f"{what}: most", most, 1, _MOST_SLOTS),
    )


def _tables(data: dict[str, Any], key: str, source: str) -> list[Any]:
    """Return the tables of one kind; `key = ...` and `[key]` are no such tables."""
    value = data.get(key, [])
    if isinstance(value, dict):
        raise InputError(f"{source} has a single table [{key}]; write [[{key}]], in two brackets, above each of them")
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise InputError(
            f"{source}: {key} is {shown(value)}; expected a table below a line [[{key}]] for each, not '{key} = ...'"
        )
    return value


def _list(data: dict[str, Any], key: str, what: str) -> list[Any]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise InputError(f"{what}: {key} is {shown(value)}; expected a list")
    return value


def _texts(value: Any, key: str, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InputError(f"{what}: {key} is {shown(value)}; expected a list of texts")
    return tuple(value)


def _named(value: Any, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InputError(f"{what} is {shown(value)}; expected letters, digits and . _ : / @ -, at most 128")
    return value


def _refuse_others(table: dict[str, Any], known: tuple[str, ...], what: str) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"{what} has the key {shown(key)}; expected {', '.join(known)}")


def _refuse_twice(names: list[str], what: str) -> None:
    twice = repeated(names)
    if twice is not None:
        raise InputError(f"{what} '{twice}' is there twice; give each a name of its own")
