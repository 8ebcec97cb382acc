"""How far allocation rules are from the optimum of the same batch.

The straggler is compared on the whole batch, as if there were no chunk; the fill with the requests that the simulation
would send: all for a rule that chooses, and for the others the oldest before each of whom there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.prefill import codes
from lbopt.prefill.allocations import make_allocation, place
from lbopt.prefill.exact.batch import PrefillBatch
from lbopt.prefill.exact.fill import best_fill
from lbopt.prefill.exact.placement import Fill, Placement, fill_of, straggler_of
from lbopt.prefill.exact.straggler import least_straggler

RULES = ("pbaa", "longest-first", "round-robin")


@dataclass(frozen=True, slots=True)
class AllocationGap:
    """One rule on one batch, in tokens.

    `straggler` and `filled` are the rule's, `least_straggler` and `most_filled` what is known to be the best possible
    (bounds, reached where the solve was optimal).
    """

    rule: str
    straggler: int
    least_straggler: int
    filled: int
    most_filled: int
    overshoot: int

    @property
    def straggler_gap(self) -> float:
        """How much longer the fullest unit is than it has to be, as a share of the least."""
        return (self.straggler - self.least_straggler) / max(1, self.least_straggler)

    @property
    def fill_gap(self) -> float:
        """Share of what the pass could hold that it does not."""
        return (self.most_filled - self.filled) / max(1, self.most_filled)


def allocation_gaps(
    batch: PrefillBatch,
    rules: Sequence[str] = RULES,
    time_limit: float | None = None,
    seed: int = 0,
    *,
    turn: int = 0,
    stages: int = 3,
) -> tuple[list[AllocationGap], Placement, Fill]:
    """Return a row for each rule, and the two optima.

    Parameters
    ----------
    batch
        The batch.
    rules
        Names of allocations.
    time_limit
        Seconds for each of the two optima; None for no limit.
    seed
        Seed of the solver.
    turn
        Requests that the instance was sent before, where round-robin stands.
    stages
        As in `best_fill`.
    """
    placement, fill = least_straggler(batch, time_limit, seed), best_fill(batch, time_limit, seed, stages=stages)
    rows = []
    for rule in rules:
        filled, overshoot, _ = fill_of(batch, sent_by(batch, rule, turn))
        straggler = straggler_of(batch, place_by(batch, rule, codes.NO_LIMIT, batch.num_requests, turn))
        rows.append(AllocationGap(rule, straggler, placement.bound, filled, fill.bounds[0], overshoot))
    return rows, placement, fill


def place_by(batch: PrefillBatch, rule: str, chunk: int, first: int, turn: int = 0) -> NDArray[np.int64]:
    """Return the units, int64 (n,), that `rule` gives to the first so many requests; -1 where it keeps them.

    Parameters
    ----------
    batch
        The batch.
    rule
        Name of the allocation.
    chunk
        Most tokens of a unit in a pass.
    first
        Requests to place, in order of arrival.
    turn
        Requests that the instance was sent before.
    """
    unit = np.full(batch.num_requests, -1, dtype=np.int64)
    hits = None if batch.hits is None else batch.hits[:first]
    pending = batch.pending[:first]
    unit[:first] = place(make_allocation(rule), batch.load.copy(), batch.length[:first], chunk, hits, pending, turn)
    return np.maximum(unit, -1)


def sent_by(batch: PrefillBatch, rule: str, turn: int = 0) -> NDArray[np.int64]:
    """Return the units, int64 (n,), that `rule` gives in a simulation; -1 where it keeps or refuses."""
    first = batch.num_requests
    if not make_allocation(rule).chooses:
        room = batch.num_units * batch.chunk - sum(batch.load.tolist())
        before = np.concatenate([[0], np.cumsum(batch.cost.min(axis=1, initial=codes.NO_LIMIT))])
        first = int((before[:-1] < room).sum())
    return place_by(batch, rule, batch.chunk, first, turn)
