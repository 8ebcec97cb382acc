"""domain: each domain of requests owns a block of workers, and a request joins the shortest queue of its block.

The blocks are in proportion to the domains of the requests to learn from, by largest remainder; a domain left without
a worker takes one from the domain that has most. With more domains than workers the commonest ones keep a block each
and the others share one. The labels are an oracle's: signatures do without them.

Source: ELDR (arXiv 2607.00466), the baseline of its evaluation; the apportionment is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.routing.codes import BAND, BAND_UNIT
from lbopt.model import Trace
from lbopt.policies.known_experts import experts_of
from lbopt.policies.policy import CompiledPolicy


def domain(blocks: int = 5) -> CompiledPolicy:
    """Build the rule; `blocks` is how many domains, the rest of them counted as one, have workers of their own."""
    if blocks < 1:
        raise InputError(f"policy 'domain': blocks is {blocks}; expected 1 or more")
    return CompiledPolicy(
        name="domain" if blocks == 5 else f"domain:blocks={blocks}",
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
