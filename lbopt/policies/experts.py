"""Rules that go by the experts which requests use: eldr by similarity, domain by blocks of workers.

What a policy that goes by experts takes from a trace: which experts requests use, and a capture to learn from.

domain: each domain of requests owns a block of workers, and a request joins the shortest queue of its block.

The blocks are in proportion to the domains of the requests to learn from, by largest remainder; a domain left without
a worker takes one from the domain that has most. With more domains than workers the commonest ones keep a block each
and the others share one. The labels are an oracle's: signatures do without them.

Source: ELDR (arXiv 2607.00466), the baseline of its evaluation; the apportionment is ours.

eldr: a request goes to a worker whose experts it will use, as long as that worker is not busier than its like.

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
from lbopt.model import RequestExperts, Trace
from lbopt.policies.policy import CompiledPolicy, Guide, labelled
from lbopt.spec import unknown

if TYPE_CHECKING:
    from lbopt.locality import ExpertActivity, RoutingTable


#: Prompts that a table is fitted to; as many as the source of ELDR took.
CALIBRATION = 1000


def experts_of(policy: str, trace: Trace) -> RequestExperts:
    """Return which experts the requests use; refuse a trace that does not say."""
    if trace.experts is None:
        raise InputError(
            f"policy '{policy}' goes by the experts that requests use, and trace '{trace.name}' does not say which; "
            "expected a family such as moe-task, or a capture"
        )
    return trace.experts


def measured(experts: RequestExperts, transform: str) -> NDArray[np.generic]:
    """Return what a transform is made of, (M, L, E)."""
    from lbopt.locality.signature import TRANSFORMS

    if TRANSFORMS[transform] == "counts":
        return experts.chosen
    if transform == "gate-prob" and experts.gate_prob is not None:
        return experts.gate_prob
    raise InputError(f"transform '{transform}' needs scores of the gate, which these requests do not come with")


def calibration(experts: RequestExperts) -> ExpertActivity:
    """Return the first different prompts of requests as what a capture of them would hold."""
    from lbopt.locality import ExpertActivity

    rows = experts.profiles_of_first(CALIBRATION)
    return ExpertActivity(
        counts=experts.chosen[rows].astype(np.int64),
        gate_prob=None if experts.gate_prob is None else experts.gate_prob[rows].astype(np.float64),
        gate_logit=None,
        decode=experts.decode[rows].astype(np.float64),
        domain=experts.domain[rows],
    )


def domain(blocks: int = 5) -> CompiledPolicy:
    """Build the rule; `blocks` is how many domains, the rest of them counted as one, have workers of their own."""
    if blocks < 1:
        raise InputError(f"policy 'domain': blocks is {blocks}; expected 1 or more")
    return CompiledPolicy(
        name=labelled("domain", {"blocks": blocks}, {"blocks": 5}),
        admission="immediate",
        code=BAND,
        parameters={"width": round(0.5 / BAND_UNIT)},  # between a worker of the block and all others
        guide=DomainGuide(blocks),
    )


@dataclass(frozen=True, slots=True)
class DomainGuide:
    """Prefers the workers of a request's block, all of them alike."""

    blocks: int

    @property
    def learns(self) -> bool:
        """Always: the sizes of blocks are those of other requests."""
        return True

    def preferences(self, requests: Trace, num_workers: int, training: Trace | None) -> NDArray[np.float64]:
        """Return 1 for the workers of the block and 0 for others, float64 (M, G)."""
        experts = experts_of("domain", requests)
        if training is None:
            raise InputError("policy 'domain' needs requests to count its domains in; give training requests")
        known = experts_of("domain", training)
        counts = np.bincount(known.domain[known.profile])
        block = block_of_domain(counts, min(self.blocks, num_workers))
        quota = np.bincount(block, weights=counts).astype(np.int64)
        owner = np.repeat(np.arange(quota.size), apportioned(quota, num_workers))
        rest = int(block.max())  # a domain that was not learned joins the rarest block
        own = np.append(block, rest)[np.minimum(experts.domain, block.size)]
        preference: NDArray[np.float64] = (owner[np.newaxis, :] == own[:, np.newaxis]).astype(np.float64)
        return preference


def block_of_domain(counts: NDArray[np.int64], blocks: int) -> NDArray[np.int64]:
    """Return the block of each domain: the commonest `blocks` - 1 alone, and all others in the last.

    With no more domains than blocks each has its own. Domains without a request in the training data are in the last
    one.
    """
    order = np.argsort(-counts, kind="stable")
    order = order[: np.count_nonzero(counts)]
    block = np.full(counts.size, min(blocks, order.size) - 1, dtype=np.int64)
    block[order[:blocks]] = np.arange(min(blocks, order.size))
    return block


def apportioned(counts: NDArray[np.int64], num_workers: int) -> NDArray[np.int64]:
    """Return how many of the workers each block gets, by largest remainder and at least one; sums to `num_workers`."""
    if counts.size > num_workers:
        raise InputError(f"{counts.size} blocks cannot share {num_workers} workers; expected at most {num_workers}")
    quota = counts * num_workers / counts.sum()
    given: NDArray[np.int64] = np.floor(quota).astype(np.int64)
    remainder = np.argsort(-(quota - given), kind="stable")
    given[remainder[: num_workers - int(given.sum())]] += 1
    while (given == 0).any():
        given[int(np.argmax(given))] -= 1
        given[int(np.argmin(given))] += 1
    return given


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
    return _in_band(labelled("eldr", {"tau": tau, **guide.options}, _DEFAULTS), tau, guide)


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
