"""The rule `eldr` on a live fleet: a request goes where its experts are in use already, within a band of similarity.

The rule binds a request on arrival, by its signature: what its prompt did to the experts, where that is known
(`router/signatures` says who). A request without one goes to the worker with the fewest requests; of equal ones to that
with fewer tokens, then to the first.

A worker has the centroid that has its name. One whose name the table does not have takes the first centroid that is
free, and keeps it until it leaves the group. One for which no centroid is left is as similar as the most similar
worker: it is in every band, and takes a request where it has fewer than the band's worker has.

Source: ELDR (arXiv 2607.00466), section on routing; names, and workers without a centroid, are ours.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import listed
from lbopt.kernels.routing.codes import BAND, BAND_UNIT
from lbopt.locality.band_router import DEFAULT_TAU, BandRouter, Seen
from lbopt.locality.drift import DriftWatch
from lbopt.locality.routing_table import RoutingTable, check_model, read_table
from lbopt.policies import CompiledPolicy, Policy
from lbopt.policies.experts import FittedGuide
from lbopt.serving.state import WorkerMirror

if TYPE_CHECKING:
    from lbopt.serving.router.signatures import Signature

Ints = NDArray[np.int64]

_log = logging.getLogger(__name__)


class Prepared(NamedTuple):
    """A table that is ready to decide."""

    router: BandRouter
    watch: DriftWatch | None
    table_id: str


class LocalityRule:
    """Binds requests of one group by a routing table.

    Parameters
    ----------
    table
        File of the table.
    tau
        Width of the band.
    num_workers
        Workers of the group.

    Raises
    ------
    InputError
        Where the table cannot be read, asks for sums of the gate, or has fewer centroids than the group has workers.
    """

    def __init__(self, table: str, tau: float = DEFAULT_TAU, *, num_workers: int = 1) -> None:
        if not table:
            raise InputError("eldr is given no file; name one that `lbopt fit` has written: eldr:table=FILE")
        self.path = Path(table)
        self.tau = tau
        self._num_workers = num_workers
        self._now = self.prepare()
        if num_workers > self.table.num_workers:
            raise InputError(
                f"routing table '{table}' has {self.table.num_workers} centroids and the group {num_workers} workers; "
                f"fit it again with --workers {num_workers}"
            )
        self._places: dict[str, int] = {}
        self._names: tuple[str, ...] = ()

    @property
    def table(self) -> RoutingTable:
        """The table that decides now."""
        return self._now.router.table

    @property
    def table_id(self) -> str:
        """Its number."""
        return self._now.table_id

    @property
    def watch(self) -> DriftWatch | None:
        """The watch on drift; None where the table does not hold what that is held against."""
        return self._now.watch

    def prepare(self) -> Prepared:
        """Read the file anew and return what decides by it, without deciding by it yet; a second or two."""
        table = read_table(self.path)
        if table.measurement != "counts":
            raise InputError(
                f"routing table '{self.path}' is of transform '{table.transform}', and a live router is told counts "
                "alone; fit one with --transform count-idf"
            )
        watch = None if table.drift is None else DriftWatch(table.drift, self.tau)
        return Prepared(BandRouter(table, self.tau), watch, table.table_id)

    def check(self, prepared: Prepared) -> None:
        """Refuse a table of another model, or of fewer centroids than workers have now."""
        table = prepared.router.table
        check_model(table, self.table.shape, self.table.model)
        number = len(self._names) or self._num_workers  # no request has come yet: as many as there were at the start
        if number > table.num_workers:
            raise InputError(
                f"the new routing table has {table.num_workers} centroids and the group {number} workers; "
                f"fit it again with --workers {number}"
            )

    def exchange(self, prepared: Prepared) -> None:
        """Decide by another table from now on, which `check` has not refused."""
        self._now, self._places, self._names = prepared, {}, ()

    def place_of(self, name: str) -> int:
        """Return the number of a worker's centroid, -1 where it has none."""
        return self._places.get(name, -1)

    def choose(self, workers: Sequence[WorkerMirror], signature: Signature | None) -> int:
        """Return the position of the worker that a request is bound to.

        Parameters
        ----------
        workers
            Those to which requests may be bound, at least one.
        signature
            Of the request; None where it is not known.
        """
        if signature is None:
            return min(range(len(workers)), key=lambda i: (workers[i].bound, workers[i].virtual_load, i))
        self._settle(tuple(worker.name for worker in workers[0].group.workers))
        router = self._now.router
        seen = router.see(signature.counts)
        if signature.is_own:
            self._watch(seen)
        load = np.zeros(router.table.num_workers, dtype=np.int64)
        is_open = np.zeros(load.size, dtype=np.bool_)
        position = dict[int, int]()
        spare = -1
        for i, worker in enumerate(workers):
            place = self._places.get(worker.name, -1)
            if place >= 0:
                load[place], is_open[place], position[place] = worker.bound, True, i
            elif spare < 0 or worker.bound < workers[spare].bound:
                spare = i
        place = router.choose(seen, load, is_open)
        if place < 0:
            return spare
        if spare >= 0 and workers[spare].bound < load[place]:
            return spare
        return position[place]

    def observe(self, counts: Ints) -> None:
        """Take into the watch what a request did that was bound before this was known."""
        if self._now.watch is not None:
            self._watch(self._now.router.see(counts))

    def warm(self) -> None:
        """Compile what decisions need."""
        shape = self.table.shape
        counts = np.ones((shape.num_layers, shape.num_experts), dtype=np.int64)
        self._now.router.route(counts, np.zeros(self.table.num_workers, dtype=np.int64))

    def _watch(self, seen: Seen) -> None:
        if self._now.watch is not None:
            self._now.watch.observe(seen.greatest, seen.within, seen.strange, seen.nearest)

    def _settle(self, names: tuple[str, ...]) -> None:
        """Give centroids to the workers of the group, and take them from those that have left."""
        if names == self._names:
            return
        own = {name: place for place, name in enumerate(self.table.workers)}
        places = {name: own[name] for name in names if name in own}
        taken = set(places.values())
        for name in names:
            held = self._places.get(name, -1)
            if name not in places and held >= 0 and held not in taken:
                places[name] = held
                taken.add(held)
        vacant = (place for place in range(self.table.num_workers) if place not in taken)
        for name in names:
            if name not in places and (place := next(vacant, -1)) >= 0:
                places[name] = place
        strangers = [name for name in names if name not in own]
        if own and strangers:
            _log.warning(
                "routing table %s has no centroid for %s; %s",
                self.table_id,
                listed(strangers),
                "they have taken those of workers that are not there"
                if all(name in places for name in strangers)
                else "those without one take requests where they have fewer than the others",
            )
        self._names, self._places = names, places


def locality_of(policy: Policy, num_workers: int) -> LocalityRule | None:
    """Return the rule that decides for `eldr:table=FILE`; None for every other policy."""
    if not isinstance(policy, CompiledPolicy) or policy.code != BAND or not isinstance(policy.guide, FittedGuide):
        return None
    if policy.guide.table is None:
        return None
    width = dict(policy.parameters)["width"]
    return LocalityRule(policy.guide.table, width * BAND_UNIT, num_workers=num_workers)
