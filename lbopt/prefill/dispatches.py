"""What the scheduler had before it at each dispatch of a run, and what its rule made of it.

A `Simulation` is looked at after every moment, and the dispatch of that moment is undone: what was sent is taken back
from the loads, what was kept was kept once less. Without a latency the scheduler knows all of this at the time, so that
the rule, asked again, gives the same units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.prefill import codes
from lbopt.prefill.exact.batch import PrefillBatch
from lbopt.prefill.requests import PrefillRequests
from lbopt.prefill.setting import PrefillSetting
from lbopt.prefill.simulate import Simulation


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
