"""The groups of a log: sets of workers at one barrier, each of which is audited by itself.

First the labels. A bipartite graph has an edge from each label of requests (model, then adapter, then tenant) to each
worker that served it; sets of workers that share no label are its components. Few requests a label make components by
chance: a label of n requests falls on one side of a cut, with a share s of all requests, with probability
s^n + (1 - s)^n. Components are kept where the product over labels, times the 2^(G - 1) cuts, is below 10^-6.

Then the clocks (`barriers`). Components whose step boundaries agree share a barrier and are one group again, in which
only some workers serve a label (`served_by`). A component whose own boundaries do not agree is several groups.
Where the clocks do not decide, components of models are groups, since an engine serves one model; of adapters and
tenants that is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lbopt.exceptions import InputError
from lbopt.files import listed
from lbopt.instances.router_log import RouterLog
from lbopt.instances.router_log.guess import LABELS
from lbopt.model import Eligibility
from lbopt.studies.audit.barriers import Coincidences, barrier_groups, coincidences

#: Chance of a component, or of a worker that a label never met, below which it is none.
_CHANCE = math.log(1e-6)
#: Standard errors beyond which the clocks join two components, or do not: 1 in 1,000 of a normal error.
_ERRORS = 3.3
_ARRAYS = ("ids", "arrival", "start", "finish", "prompt", "output", "worker", "ending")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Workers at one barrier and their requests.

    Parameters
    ----------
    name
        What it is called on pages: its models, or its workers.
    log
        Its rows of the log.
    """

    name: str
    log: RouterLog


def only(log: RouterLog, wanted: Sequence[str]) -> RouterLog:
    """Return the rows of a log with these labels.

    Parameters
    ----------
    wanted
        QUANTITY=NAME each, as in "model=llama"; of several names of one quantity any counts.
    """
    names: dict[str, set[str]] = {}
    for text in wanted:
        quantity, _, name = text.partition("=")
        names.setdefault(quantity, set()).add(name)
    rows = np.ones(len(log), dtype=np.bool_)
    for quantity, known in names.items():
        values = np.array(log.workers)[log.worker] if quantity == "worker" else log.labels.get(quantity)
        if values is None:
            raise InputError(f"log '{log.name}' names no {quantity}; name its column: --column {quantity}=NAME")
        if missing := known - set(values.tolist()):
            raise InputError(
                f"log '{log.name}' has no {quantity} '{sorted(missing)[0]}'"
                + (f"; it has {listed(sorted(set(values.tolist())))}" if quantity in ("model", "worker") else "")
            )
        rows &= np.isin(values, sorted(known))
    if not rows.any():
        raise InputError(f"no row of log '{log.name}' has all of {', '.join(wanted)}")
    return log if rows.all() else part_of(log, rows)


def part_of(log: RouterLog, rows: NDArray[np.bool_]) -> RouterLog:
    """Return some rows of a log, with the workers that served them."""
    used, worker = np.unique(log.worker[rows], return_inverse=True)
    columns: dict[str, Any] = {name: getattr(log, name)[rows] for name in _ARRAYS}
    begin = float(columns["arrival"].min())
    columns |= {name: columns[name] - begin for name in ("arrival", "start", "finish")}
    columns["worker"] = worker.astype(np.int64)
    labels = {name: texts[rows] for name, texts in log.labels.items()}
    workers = tuple(log.workers[g] for g in used)
    # A router's count of steps is that of all its workers.
    counted = None if log.counted is None or len(workers) < len(log.workers) else log.counted - (begin, 0)
    return replace(log, **columns, workers=workers, labels=labels, counted=counted)


def groups_of(log: RouterLog) -> tuple[list[Group], list[str]]:
    """Return the groups of a log, one where all its workers share a barrier, and what is to be said of them.

    Raises
    ------
    InputError
        Where workers share no adapter or tenant and their clocks do not say whether they share a barrier, or a worker
        is in two groups that a column names.
    """
    G = len(log.workers)
    if "group" in log.labels:  # named, or recognised
        return _named(log, _by_column(log)), []
    if G < 2:
        return _named(log, [list(range(G))]), []
    found = coincidences(log) if log.is_finished.any() else None
    components, by = _components(log)
    notes: list[str] = []
    joined = components if found is None else _joined(log, found, components, by, notes)
    groups: list[list[int]] = []
    for members in joined:
        parts, decided = ([members], False) if found is None else barrier_groups(found, members)
        groups += parts
        if not decided and len(members) > 1:
            notes.append(
                f"the times of the log do not show whether the {len(members)} workers of one set meet at one barrier; "
                "they are taken to. If they do not, name a column that says which do: --group COLUMN"
            )
    if len(groups) == G and len(components) == 1:  # times without common boundaries show no groups
        groups = [list(range(G))]
    return _named(log, groups), notes


def served_by(log: RouterLog) -> Eligibility | None:
    """Return which workers serve each request, by its model and adapter; None where all serve all.

    A worker serves no label of many requests of which it would have been given none by chance in less than one of a
    million logs.
    """
    labels, label = _coded(log, ("model", "adapter"))
    if labels < 2:
        return None
    G = len(log.workers)
    met = np.bincount(label * G + log.worker, minlength=labels * G).reshape(labels, G)
    share = met.sum(axis=0) / len(log)
    chance = met.sum(axis=1)[:, None] * np.log1p(-np.minimum(share, 1 - 1e-12))[None, :] + math.log(labels * G)
    allowed = (met > 0) | (chance > _CHANCE)
    return None if allowed.all() else Eligibility.of_pairs(allowed[label])


def names_of_served(log: RouterLog, served: Eligibility) -> dict[str, tuple[str, ...]]:
    """Return the workers of each model with its adapter that only some workers serve."""
    quantities = [quantity for quantity in ("model", "adapter") if quantity in log.labels]
    label = _coded(log, quantities)[1]
    names = {}
    for row in np.unique(label, return_index=True)[1].tolist():
        allowed = served.allowed[served.kind[row]]
        if not allowed.all():
            name = " with ".join(filter(None, (str(log.labels[quantity][row]) for quantity in quantities)))
            names[name or "no adapter"] = tuple(log.workers[g] for g in np.flatnonzero(allowed))
    return names


def _by_column(log: RouterLog) -> list[list[int]]:
    names, code = np.unique(log.labels["group"], return_inverse=True)
    met = np.unique(np.column_stack([log.worker, code]), axis=0)
    worker, count = np.unique(met[:, 0], return_counts=True)
    if (count > 1).any():
        twice = int(worker[int(np.argmax(count > 1))])
        raise InputError(
            f"worker '{log.workers[twice]}' of log '{log.name}' is in {int(count.max())} groups; expected a column "
            "that names one group for each worker"
        )
    return [met[met[:, 1] == group, 0].tolist() for group in range(names.size)]


def _coded(log: RouterLog, quantities: Sequence[str]) -> tuple[int, NDArray[np.int64]]:
    """Return how many labels there are, quantities taken together, and that of each request."""
    label = np.zeros(len(log), dtype=np.int64)
    for quantity in quantities:
        if quantity in log.labels:
            names, code = np.unique(log.labels[quantity], return_inverse=True)
            label = np.unique(label * names.size + code, return_inverse=True)[1]
    return int(label.max()) + 1, label


def _components(log: RouterLog) -> tuple[list[list[int]], list[str]]:
    """Return sets of workers that share no label, and for each worker the quantities that keep it from others."""
    known = [quantity for quantity in LABELS[:3] if quantity in log.labels]
    sets, keeps = [list(range(len(log.workers)))], [""] * len(log.workers)
    for k, quantity in enumerate(known):
        finer: list[list[int]] = []
        for members in sets:
            parts = _split(log, members, known[: k + 1])
            finer += parts
            if len(parts) > 1:
                for worker in members:
                    keeps[worker] = quantity
        sets = finer
    return sets, keeps


def _split(log: RouterLog, members: list[int], quantities: Sequence[str]) -> list[list[int]]:
    rows = np.isin(log.worker, members)
    label, worker = _coded(log, quantities)[1][rows], log.worker[rows]
    labels, place = int(label.max()) + 1, np.searchsorted(members, worker)
    edges = coo_array((np.ones(label.size), (label, labels + place)), shape=(labels + len(members),) * 2)
    component = connected_components(edges, directed=False)[1][labels:].tolist()
    parts = [[g for g, of in zip(members, component, strict=True) if of == one] for one in dict.fromkeys(component)]
    if len(parts) < 2:
        return [members]
    count = np.unique(label, return_counts=True)[1]
    for part in parts:
        share = float(np.isin(worker, part).mean())
        chance = np.logaddexp(count * math.log(share), count * math.log1p(-share)).sum()
        if chance + (len(members) - 1) * math.log(2) > _CHANCE:
            return [members]
    return parts


def _joined(
    log: RouterLog, found: Coincidences, components: list[list[int]], by: list[str], notes: list[str]
) -> list[list[int]]:
    """Join the components whose clocks agree.

    Parameters
    ----------
    by
        Of each worker the last quantity that keeps it from others.
    notes
        Where notes go (changed in place).
    """
    sets: list[list[int]] = []
    for members in components:
        verdicts = {k: found.compare(other, members, _ERRORS) for k, other in enumerate(sets)}
        same = [k for k, verdict in verdicts.items() if verdict == "one"]
        asked = [k for k, verdict in verdicts.items() if verdict == "open" and by[members[0]] != "model"]
        if asked and not same:
            raise InputError(
                f"workers of log '{log.name}' share no {by[members[0]]}, and its times do not show whether they meet "
                "at one barrier; name a column that says which do, --group COLUMN, or audit each, --only "
                f"{by[members[0]]}=NAME"
            )
        if not same and "open" in verdicts.values():
            notes.append(
                "the times of the log do not show whether workers of different models meet at one barrier; an engine "
                "serves one model, so each is a group of its own"
            )
        sets = [other for k, other in enumerate(sets) if k not in same] + [
            sorted([*members, *(g for k in same for g in sets[k])])
        ]
    notes[:] = dict.fromkeys(notes)
    return sorted(sets)


def _named(log: RouterLog, groups: list[list[int]]) -> list[Group]:
    """Return the groups with their rows, named by what they alone hold."""
    if len(groups) == 1:
        return [Group("", log)]
    parts = [part_of(log, np.isin(log.worker, members)) for members in groups]
    for quantity in ("group", "model", "adapter"):
        if quantity in log.labels:
            held = [sorted(set(part.labels[quantity].tolist())) for part in parts]
            if sum(map(len, held)) == len(set().union(*held)):
                named = [Group(f"{quantity} {listed(names)}", part) for names, part in zip(held, parts, strict=True)]
                return sorted(named, key=lambda group: group.name)
    return [Group(f"workers {part.workers[0]} to {part.workers[-1]}", part) for part in parts]
