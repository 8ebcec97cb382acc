"""How far allocation rules are from the optimum of the same batch.

The straggler is compared on the whole batch, as if there were no chunk; the fill with the requests that the simulation
would send: all for a rule that chooses, and for the others the oldest before each of whom there is room.

What the scheduler had before it at each dispatch of a run, and what its rule made of it.

A `Simulation` is looked at after every moment, and the dispatch of that moment is undone: what was sent is taken back
from the loads, what was kept was kept once less. Without a latency the scheduler knows all of this at the time, so that
the rule, asked again, gives the same units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.prefill import codes
from lbopt.prefill.allocations import make_allocation, place
from lbopt.prefill.exact.batch import Fill, Placement, PrefillBatch, fill_of, straggler_of
from lbopt.prefill.exact.optimum import best_fill, least_straggler
from lbopt.prefill.requests import PrefillRequests
from lbopt.prefill.setting import PrefillSetting
from lbopt.prefill.simulate import Simulation

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
    chunk
        Most tokens of a unit in a pass.
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


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """One dispatch.

    Parameters
    ----------
    time
        s.
    instance, turn
        Which instance, and how many requests were sent to it before, which is where round-robin stands.
    requests
        int64 (n,), the numbers of all who had arrived and were not sent, the oldest first.
    batch
        What they are, and what the units of the instance had to compute.
    unit
        int64 (n,), where the rule of the run sent each; -1 where it kept or refused it.
    """

    time: float
    instance: int
    turn: int
    requests: NDArray[np.int64]
    batch: PrefillBatch
    unit: NDArray[np.int64]


def dispatches(requests: PrefillRequests, setting: PrefillSetting, *, seed: int) -> Iterator[Dispatch]:
    """Run `requests` through `setting` and yield every dispatch; arguments as of `simulate_prefill`."""
    _check(setting)
    simulation = Simulation(requests, setting, seed)
    state = simulation.state
    progress = state.progress
    ended = False
    while not ended:
        waited = state.waiting[progress.queue_head : progress.queue_tail].copy()
        arrived, last = int(progress.coming), float(progress.last_dispatch)
        ended = simulation.run(1)
        if progress.last_dispatch > last:
            queue = np.concatenate([waited, np.arange(arrived, progress.coming)])
            yield _undone(queue, requests, simulation)


def _undone(queue: NDArray[np.int64], requests: PrefillRequests, simulation: Simulation) -> Dispatch:
    setting, state = simulation.setting, simulation.state
    now, g = float(state.progress.last_dispatch), int(state.progress.target) - 1
    sent = state.status.dispatched[queue] == now
    unit = np.where(sent, state.status.unit[queue], -1)
    deferred = simulation.batch.deferred[queue]
    if setting.rule.chooses:  # it was shown all of them; who was refused was not counted once more
        still = state.waiting[state.progress.queue_head : state.progress.queue_tail]
        deferred[np.isin(queue, still)] -= 1
    hits = None if requests.hits is None else requests.hits[queue, g]
    cost = requests.length[queue]
    if hits is not None:
        cost = cost - np.where(sent, hits[np.arange(queue.size), unit], 0)
    load = state.backlog[g].copy()
    np.subtract.at(load, unit[sent], cost[sent])
    batch = PrefillBatch(load, requests.length[queue], hits, setting.chunk_tokens or codes.NO_LIMIT, deferred > 0)
    return Dispatch(now, g, int(state.instances[g].placed_in_turn) - int(sent.sum()), queue, batch, unit)


def _check(setting: PrefillSetting) -> None:
    if setting.dispatch.code not in (codes.SPACING, codes.TICK):
        raise InputError(
            f"dispatches are known one by one under a staggered policy, not under '{setting.dispatch.name}'; expected "
            "staggered"
        )
    for name, none in (("latency", 0.0), ("requests_per_pass", None), ("queue_limit", None)):
        if getattr(setting, name) != none:
            raise InputError(f"{name} is {getattr(setting, name)}; dispatches can be undone only with {none}")
