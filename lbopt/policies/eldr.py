"""eldr: a request goes to a worker whose experts it will use, as long as that worker is not busier than its like.

At the hand-off from prefill the request's signature is compared with one centroid a worker; among those nearly as
similar as the most similar one (a band of cosines of width tau) the worker with fewest requests takes it. tau = 0 is
the nearest centroid; tau = 1 is join-shortest-queue but for ties, which go to the more similar worker and not to the
lower number: where many workers are as busy as each other, that alone saves some experts. The centroids come from a
table that was fitted before (`table=FILE`), or are fitted to the requests that the study keeps for learning.

Source: ELDR (arXiv 2607.00466), sections on clustering and routing; `lbopt.locality`, `lbopt.kernels.routing.band`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.routing.codes import BAND, BAND_UNIT
from lbopt.model import Trace
from lbopt.policies.known_experts import calibration, experts_of, measured
from lbopt.policies.policy import CompiledPolicy, Guide
from lbopt.spec import unknown

if TYPE_CHECKING:  # compiled code is imported when the rule is used, not when it is named
    from lbopt.locality import RoutingTable

CLUSTERS = ("balanced", "vanilla")


def eldr(
    tau: float = 0.1,
    table: str | None = None,
    clusters: str = "balanced",
    transform: str = "count-idf",
    seed: int = 0,
) -> CompiledPolicy:
    """Build the rule; clusters, transform and seed say how a table is fitted where none is given.

    Parameters
    ----------
    tau
        Width of the band: workers whose cosine is at most this far below the largest.
    table
        File of a routing table; None fits one.
    clusters
        How clusters are fitted: a name from `CLUSTERS`.
    transform
        Transform of the signatures: a name from `TRANSFORMS`.
    seed
        Seed of the fit.
    """
    from lbopt.locality.signature import TRANSFORMS

    _check_width(tau)
    if clusters not in CLUSTERS:
        raise unknown("clusters of policy 'eldr'", clusters, CLUSTERS)
    if transform not in TRANSFORMS:
        raise unknown("transform", transform, TRANSFORMS)
    if table is not None and (clusters, transform, seed) != ("balanced", "count-idf", 0):
        raise InputError(
            "policy 'eldr': clusters, transform and seed say how a table is fitted; leave them out with one"
        )
    guide = FittedGuide(table, clusters, transform, seed)
    options = {"tau": tau, **guide.options}
    changed = ",".join(f"{name}={value}" for name, value in options.items() if value != _DEFAULTS[name])
    return _in_band(f"eldr:{changed}" if changed else "eldr", tau, guide)


def eldr_by(table: RoutingTable, tau: float = 0.1) -> CompiledPolicy:
    """Build the rule around a table that is at hand."""
    _check_width(tau)
    return _in_band(f"eldr:tau={tau:g}", tau, TableGuide(table))


def _check_width(tau: float) -> None:
    if not 0 <= tau <= 1:  # below 0 not even the favourite is in the band
        raise InputError(f"policy 'eldr': tau is {tau}; expected a width from 0 to 1, in cosines")


def _in_band(name: str, tau: float, guide: Guide) -> CompiledPolicy:
    width = {"width": math.floor(tau / BAND_UNIT + 0.5)}
    return CompiledPolicy(name=name, admission="immediate", code=BAND, parameters=width, guide=guide)


_DEFAULTS = {"tau": 0.1, "table": None, "clusters": "balanced", "transform": "count-idf", "seed": 0}


@dataclass(frozen=True, slots=True)
class TableGuide:
    """Prefers workers by the cosine of a request's signature and the worker's centroid."""

    table: RoutingTable

    @property
    def learns(self) -> bool:
        """No: that was done when the table was fitted."""
        return False

    def preferences(self, requests: Trace, num_workers: int, training: Trace | None) -> NDArray[np.float64]:
        """Return cosines, float64 (M, G)."""
        from lbopt.locality.routing_table import check_model, check_workers

        experts = experts_of("eldr", requests)
        shape = replace(self.table.shape, num_layers=experts.shape[0], num_experts=experts.shape[1])
        check_model(self.table, shape, experts.model)
        check_workers(self.table, num_workers)
        return self.table.similarities(measured(experts, self.table.transform))


@dataclass(frozen=True, slots=True)
class FittedGuide:
    """The same with a table that is read from a file, or fitted when the requests to learn from are known."""

    table: str | None
    clusters: str
    transform: str
    seed: int

    @property
    def options(self) -> dict[str, str | int | None]:
        """The options that made it."""
        return {"table": self.table, "clusters": self.clusters, "transform": self.transform, "seed": self.seed}

    @property
    def learns(self) -> bool:
        """Whether it fits a table itself."""
        return self.table is None

    def preferences(self, requests: Trace, num_workers: int, training: Trace | None) -> NDArray[np.float64]:
        """Return cosines, float64 (M, G)."""
        experts_of("eldr", requests)
        return TableGuide(self._table(num_workers, training)).preferences(requests, num_workers, None)

    def _table(self, num_workers: int, training: Trace | None) -> RoutingTable:
        from lbopt.locality.fit import fit_routing
        from lbopt.locality.routing_table import read_table

        if self.table is not None:
            return read_table(Path(self.table))
        if training is None:
            raise InputError("policy 'eldr' needs requests to fit its centroids to; give a table, or training requests")
        learned = experts_of("eldr", training)
        return fit_routing(
            calibration(learned),
            num_workers,
            transform=self.transform,
            balanced=self.clusters == "balanced",
            seed=self.seed,
            model=learned.model,
        ).table
