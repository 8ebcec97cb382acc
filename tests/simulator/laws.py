"""What must be true of the state between a decision and its step: nothing is lost or counted twice.

Told from the arrays of the loop by counting anew, with none of the loop's functions:

* every request is in one place: not yet known, in the pool, in one worker's queue, running on one worker, or ended;
* slots: no worker runs more requests than it has slots, and none runs one where it has left;
* tokens: loads and queued tokens are sums of sizes; a size is the prompt and what was made; what is computed is there;
* blocks: a worker's blocks are those of its running and its paused requests, and not more than it has.

Source: lbopt; the definitions are those of the manual, pages *simulator* and *detail*.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import lbopt.simulator
from lbopt.kernels.detail.state import PAUSED
from lbopt.kernels.simulation.state import Requests, Setting, State
from lbopt.simulator import Run
from lbopt.simulator.state import fresh_rows

_simulate = sys.modules["lbopt.simulator.simulate"]


class _CheckedLoop(_simulate._Loop):
    def hand_rows_to(self, recorder: Any) -> None:
        super().hand_rows_to(recorder)
        check(self._requests, self._setting, self._state)


def simulate_checked(*given: Any, **more: Any) -> Run:
    """`simulate`, with the laws checked before every step."""
    one = mock.patch.object(_simulate, "_rows_for", lambda workers, explained: fresh_rows(workers, 1, explained))
    with one, mock.patch.object(_simulate, "_Loop", _CheckedLoop):
        return lbopt.simulator.simulate(*given, **more)


class BrokenLawError(AssertionError):
    """The simulator's state contradicts itself: a defect of lbopt, never of its input."""


def check(requests: Requests, setting: Setting, state: State) -> None:
    """Raise where a law of conservation is broken.

    Parameters
    ----------
    requests, setting, state
        Of a run that has decided and has not taken its step yet.

    Raises
    ------
    BrokenLawError
        Naming the law, the step and both numbers.
    """
    for law, found, expected in _laws(requests, setting, state):
        if not np.array_equal(found, expected):
            raise BrokenLawError(f"step {int(state.progress.step)}: {law}: {found} is not {expected}")


Law = tuple[str, Any, Any]


def _laws(requests: Requests, setting: Setting, state: State) -> Iterator[Law]:
    progress, detail = state.progress, state.detail
    G, N = state.load.size, requests.prompt.size
    running = _running(state)
    queues = [_queue(w, state) for w in range(G)]
    pool = state.pool[progress.pool_head : progress.pool_tail].tolist()
    unknown = list(range(int(progress.undiscovered), N))
    ended = _ended(requests, state)
    everywhere = [i for place in (*running, *queues, pool, unknown, ended) for i in place]
    yield "every request is in one place", sorted(everywhere), list(range(N))

    yield "running requests", state.running, [len(place) for place in running]
    yield "running requests of the fleet", int(progress.active), sum(len(place) for place in running)
    yield "queued requests", state.queued, [len(place) for place in queues]
    yield "queued requests of the fleet", int(progress.queued), sum(len(place) for place in queues)

    sizes, made, computed = _sizes(requests, state)
    yield "load", state.load, [int(sizes[place].sum()) for place in running]
    yield "queued tokens", state.queued_tokens, [int(sizes[place].sum()) for place in queues]
    yield "sizes are prompts and what was made", sizes, requests.prompt + made
    yield "nothing is computed that is not there", bool((computed <= sizes).all()), True
    yield (
        "no request makes more than it wants",
        bool((made[unknown + pool] < requests.output[unknown + pool]).all()),
        True,
    )
    yield "those that ended made all they want", made[ended], requests.output[ended]

    yield "slots", bool((state.running <= state.slots).all()), True
    for w, place in enumerate((*running, *queues)):
        yield "requests know their worker", state.worker[place], np.full(len(place), w % G)
    if detail.rules.on and detail.rules.blocks >= 0:
        needed = -(-(sizes + int(detail.rules.draft)) // int(detail.rules.block))
        paused = [[i for i in queue if detail.tracks[i].held == PAUSED] for queue in queues]
        yield (
            "blocks",
            detail.used,
            [int(needed[a + b].sum()) for a, b in zip(running, paused, strict=True)],
        )
        yield "memory", bool((detail.used <= detail.rules.blocks).all()), True


def _running(state: State) -> list[list[int]]:
    """Return the requests that run on each worker."""
    if state.detail.rules.on:
        return [state.detail.seats[w, : state.running[w]].tolist() for w in range(state.load.size)]
    return [state.endings.request[state.endings.worker == w].tolist() for w in range(state.load.size)]


def _queue(w: int, state: State) -> list[int]:
    """Return the requests of worker `w`'s own queue, by following its links."""
    found, i = [], int(state.queue_head[w])
    for _ in range(int(state.queued[w])):
        found.append(i)
        i = int(state.next_in_queue[i])
    return found


def _ended(requests: Requests, state: State) -> list[int]:
    step = int(state.progress.step)
    if state.detail.rules.on:
        return np.flatnonzero(state.detail.finish_step >= 0).tolist()
    return np.flatnonzero((state.start_step >= 0) & (state.start_step + requests.output <= step)).tolist()


def _sizes(requests: Requests, state: State) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return of each request its size, what it has made and what is computed, int64 (N,)."""
    if state.detail.rules.on:
        tracks = state.detail.tracks
        sizes = np.where(tracks.made == tracks.wanted, requests.prompt + tracks.made, tracks.tokens)
        return sizes, np.array(tracks.made), np.where(tracks.made == tracks.wanted, 0, tracks.computed)
    step = int(state.progress.step)
    made = np.where(state.start_step >= 0, np.minimum(step - state.start_step, requests.output), 0)
    return requests.prompt + made, made, requests.prompt + made
