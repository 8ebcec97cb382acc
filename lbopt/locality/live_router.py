"""A band router for a live fleet: it keeps the requests in flight itself, and workers and tables come and go under it.

Any number of threads may share one. What a decision takes long for, the cosines, it does without a lock; then one lock
covers the choice and the count that follows from it. All that changes seldom (the table, who is open, whose centroid is
whose) is one object that is replaced as a whole. A decision that finds another one there than it began with begins
anew, so it goes by one table and one set of workers throughout.

Every change has a version, in order: a decision, an end, a join, a leave, a table. A decision is the one that a single
thread would make on the counts after all changes of lower versions, and tests replay logs to see it.

Source: ELDR (arXiv 2607.00466), section on routing; names, versions and the fleet's changes are ours.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lbopt.exceptions import InputError
from lbopt.files import listed, shown
from lbopt.kernels.locality.band import choose, measure
from lbopt.locality.band_router import DEFAULT_TAU
from lbopt.locality.drift import DriftWatch
from lbopt.locality.gate import Bools, Ints
from lbopt.locality.loaded_table import LoadedTable, check_width
from lbopt.locality.routing_table import RoutingTable


class Placement(NamedTuple):
    """Where a request goes.

    Parameters
    ----------
    worker
        Name of the worker.
    place
        Its centroid's number in the table.
    ticket
        By which `end` knows the request; also the version of the decision.
    """

    worker: str
    place: int
    ticket: int


class FleetSight(NamedTuple):
    """A fleet as it was at one version.

    Parameters
    ----------
    version
        Of the last change.
    table_id
        The table that decides.
    workers
        Who has each centroid; "" = nobody.
    in_flight
        Requests at the worker of each centroid.
    is_open
        Whether it takes requests.
    """

    version: int
    table_id: str
    workers: tuple[str, ...]
    in_flight: tuple[int, ...]
    is_open: tuple[bool, ...]


class _Worker:
    """A worker that has a centroid, or requests left from when it had one."""

    __slots__ = ("elsewhere", "name", "place")

    def __init__(self, name: str, place: int) -> None:
        self.name = name
        self.place = place  # -1 = it has no centroid
        self.elsewhere = 0  # requests in flight while it has none


class _Fleet:
    """The table and who is behind its centroids; replaced whenever one of them changes, but for the counts in it."""

    __slots__ = ("is_open", "load", "loaded", "watch", "workers")

    def __init__(
        self,
        loaded: LoadedTable,
        watch: DriftWatch | None,
        workers: tuple[_Worker | None, ...],
        load: Ints,
        is_open: Bools,
    ) -> None:
        self.loaded = loaded
        self.watch = watch
        self.workers = workers
        self.load = load  # requests in flight, changed under the lock
        self.is_open = is_open


class LiveRouter:
    """Routes the requests of a live fleet; threads may share it.

    Parameters
    ----------
    table
        The first table. Its workers are open at first, unless `absent` names them.
    tau
        Width of the band.
    absent
        Workers of the table that have not joined yet.
    watch
        Whether decisions are watched for drift, where the table holds what that is held against; a second at the start.
    """

    def __init__(
        self, table: RoutingTable, tau: float = DEFAULT_TAU, *, absent: Iterable[str] = (), watch: bool = True
    ) -> None:
        self.tau = check_width(tau, table)
        self._lock = threading.Lock()
        self._live: dict[int, _Worker] = {}
        self._version = 0
        self._watches = watch
        self._absent = set(absent)
        strangers = self._absent - set(table.names)
        if strangers:
            raise InputError(
                f"worker {shown(min(strangers))} is absent, and the table has no such worker; leave it out"
            )
        workers = tuple(None if name in self._absent else _Worker(name, k) for k, name in enumerate(table.names))
        self._fleet = _Fleet(
            LoadedTable(table),
            self._watch_of(table),
            workers,
            np.zeros(table.num_workers, dtype=np.int64),
            np.array([worker is not None for worker in workers], dtype=np.bool_),
        )

    # -- requests

    def begin(self, counts: ArrayLike) -> Placement:
        """Choose a worker and count the request as in flight there, until `end`.

        Parameters
        ----------
        counts
            int (L, E), prompt tokens that chose each expert; for the gate's transforms the sums they are made of.

        Raises
        ------
        InputError
            If the counts are of another model, negative or not finite, or no worker is open. Nothing is counted then.
        """
        tau = self.tau
        while True:
            fleet = self._fleet
            loaded = fleet.loaded
            band = loaded.band()
            inverse, greatest, nearest, within, strange = measure(loaded.measured(counts), loaded.kind, band, tau)
            if inverse < 0:
                raise loaded.refusal(inverse)
            with self._lock:
                if self._fleet is not fleet:
                    continue
                place = choose(band, inverse, tau, fleet.load, fleet.is_open)
                if place < 0:
                    raise InputError("no worker is open; let one join")
                worker = fleet.workers[place]
                assert worker is not None, "an open centroid has a worker"
                self._version = ticket = self._version + 1
                fleet.load[place] += 1
                self._live[ticket] = worker
            if fleet.watch is not None:
                fleet.watch.observe(greatest, within, strange, nearest)
            return Placement(worker.name, place, ticket)

    def end(self, ticket: int) -> int:
        """Count a request as ended, wherever its worker is now; return the version, 0 where it had ended before."""
        with self._lock:
            worker = self._live.pop(ticket, None)
            if worker is None:
                return 0
            self._version += 1
            if worker.place >= 0:
                self._fleet.load[worker.place] -= 1
            else:
                worker.elsewhere -= 1
            return self._version

    # -- workers

    def set_open(self, name: str, is_open: bool) -> int:
        """Let a worker take requests or not; what it has in flight stays counted. Return the version.

        Raises
        ------
        InputError
            Where no worker of that name has a centroid.
        """
        with self._lock:
            fleet = self._fleet
            place = self._place(name)
            mask = fleet.is_open.copy()
            mask[place] = is_open
            return self._replace(fleet.workers, fleet.load, mask)

    def join(self, name: str) -> int:
        """Let a worker take requests: at the centroid that has its name, else at one that nobody has.

        One that has a centroid already is opened. Returns the version.

        Raises
        ------
        InputError
            Where every centroid has a worker.
        """
        with self._lock:
            fleet = self._fleet
            workers, load, mask = list(fleet.workers), fleet.load.copy(), fleet.is_open.copy()
            holder = next((worker for worker in workers if worker is not None and worker.name == name), None)
            if holder is None:
                names = fleet.loaded.table.names
                vacant = [k for k, worker in enumerate(workers) if worker is None]
                if not vacant:
                    raise InputError(
                        f"worker {shown(name)} has no centroid: the table has {len(workers)} and all have workers; let "
                        f"one leave, or fit a table for {len(workers) + 1} workers and reload it"
                    )
                place = next((k for k in vacant if names[k] == name), vacant[0])
                holder = self._known().get(name) or _Worker(name, place)
                holder.place, load[place] = place, holder.elsewhere
                holder.elsewhere = 0
                workers[place] = holder
                self._absent.discard(name)
            mask[holder.place] = True
            return self._replace(tuple(workers), load, mask)

    def leave(self, name: str, *, lost: bool = False) -> int:
        """Take a worker's centroid away; what it has in flight runs out, or is ended where it is `lost`.

        Returns the version.

        Raises
        ------
        InputError
            Where no worker of that name has a centroid.
        """
        with self._lock:
            fleet = self._fleet
            place = self._place(name)
            workers, load, mask = list(fleet.workers), fleet.load.copy(), fleet.is_open.copy()
            worker = workers[place]
            assert worker is not None, "a place that has a name has a worker"
            worker.place, worker.elsewhere = -1, 0 if lost else int(load[place])
            if lost:
                self._live = {ticket: one for ticket, one in self._live.items() if one is not worker}
            workers[place], load[place], mask[place] = None, 0, False
            self._absent.add(name)
            return self._replace(tuple(workers), load, mask)

    # -- tables

    def reload(self, table: RoutingTable) -> int:
        """Decide by another table from now on; a decision goes by one of the two, never by both. Return the version.

        A worker keeps its count, and whether it is open, at the centroid that has its name. One without a centroid in
        the new table takes nothing new. A name that is new is open at once; let it `leave` first if it is not there.
        The watch on drift begins anew.

        Raises
        ------
        InputError
            Where the table is of another model shape, or gives `tau` no meaning. The old one goes on then.
        """
        check_width(self.tau, table)
        before = self._fleet.loaded.table
        if table.shape != before.shape or table.measurement != before.measurement:
            raise InputError(
                f"the new table is of {table.shape} and {table.measurement}, the present one of {before.shape} and "
                f"{before.measurement}; requests of one model can be routed by tables of that model alone"
            )
        loaded, watch = LoadedTable(table), self._watch_of(table)
        with self._lock:
            fleet, known = self._fleet, self._known()
            closed = set()
            for worker in fleet.workers:
                if worker is not None:
                    worker.elsewhere = int(fleet.load[worker.place])
                    if not fleet.is_open[worker.place]:
                        closed.add(worker.name)
                    worker.place = -1
            workers: list[_Worker | None] = []
            load, mask = np.zeros(len(table.names), dtype=np.int64), np.zeros(len(table.names), dtype=np.bool_)
            for place, name in enumerate(table.names):
                found = None if name in self._absent else known.get(name) or _Worker(name, place)
                if found is not None:
                    found.place, load[place], found.elsewhere = place, found.elsewhere, 0
                    mask[place] = name not in closed
                workers.append(found)
            self._fleet = _Fleet(loaded, watch, tuple(workers), load, mask)
            self._version += 1
            return self._version

    @property
    def drift(self) -> DriftWatch | None:
        """The watch on drift; None where the table does not hold what that is held against."""
        return self._fleet.watch

    def sight(self) -> FleetSight:
        """Return the fleet as it is now."""
        with self._lock:
            fleet = self._fleet
            return FleetSight(
                self._version,
                fleet.loaded.table.table_id,
                tuple("" if worker is None else worker.name for worker in fleet.workers),
                tuple(fleet.load.tolist()),
                tuple(fleet.is_open.tolist()),
            )

    @property
    def table(self) -> RoutingTable:
        """The table that decides now."""
        return self._fleet.loaded.table

    # -- within

    def _watch_of(self, table: RoutingTable) -> DriftWatch | None:
        return DriftWatch(table.drift, self.tau) if self._watches and table.drift is not None else None

    def _place(self, name: str) -> int:
        names = [worker.name for worker in self._fleet.workers if worker is not None]
        for worker in self._fleet.workers:
            if worker is not None and worker.name == name:
                return worker.place
        raise InputError(f"worker {shown(name)} has no centroid; those that have are {listed(names)}")

    def _known(self) -> dict[str, _Worker]:
        """Return the workers that have a centroid or requests in flight, by name."""
        found = {worker.name: worker for worker in self._live.values()}
        return found | {worker.name: worker for worker in self._fleet.workers if worker is not None}

    def _replace(self, workers: tuple[_Worker | None, ...], load: Ints, is_open: Bools) -> int:
        """Let the fleet be another one from here on; return the version."""
        fleet = self._fleet
        self._fleet = _Fleet(fleet.loaded, fleet.watch, workers, load, is_open)
        self._version += 1
        return self._version
