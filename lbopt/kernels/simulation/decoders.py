"""Decoders that do not wait for each other: every worker steps at its own pace, and requests are bound on arrival.

Event-driven: the next event is the earliest end of a step, or the next arrival; ends go first where both fall together.
A worker admits from its own queue between its steps, and an idle one starts with the request that wakes it.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, Records
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.band import bind_in_band
from lbopt.kernels.routing.codes import BAND, BAND_UNIT
from lbopt.kernels.routing.fifo import bind
from lbopt.kernels.routing.state import Shown
from lbopt.kernels.simulation.state import Requests, Setting, State, join_queue, take_head
from lbopt.kernels.simulation.step import count_experts, join_experts, leave_experts, seconds_of_step

#: The seconds from and to which steps are counted.
WINDOW = np.dtype([("begin", np.float64), ("end", np.float64)])

#: What is kept of a worker.
OF_WORKER = np.dtype(
    [
        ("own_step", np.int64),  # steps that it has begun
        ("ends", np.float64),  # s, when its step ends; infinite while it is idle
        ("steps", np.int64),  # that began in the window; the next four are of these
        ("seconds", np.float64),  # their sum
        ("running", np.int64),  # requests, summed
        ("experts", np.float64),  # different experts of a layer, summed
        ("request_seconds", np.float64),  # requests of a step times its seconds, summed
    ],
    align=True,
)


@by_reference
class Decoders(NamedTuple):
    """What workers without a barrier have beside `State`."""

    of: Records  # OF_WORKER (G,)
    finish: Floats  # float64 (N,), s
    last: Ints  # int64 (G, longest output + 1), first of the requests that end with step = column mod length
    next_to_end: Ints  # int64 (N,)


@kernel
def run_decoders(requests: Requests, setting: Setting, state: State, window: Record, out: Decoders) -> None:
    """Run until all requests have ended.

    Parameters
    ----------
    state
        Idle workers; changed in place.
    window
        WINDOW: steps that begin in it, the end left out, are counted in `out`.
    out
        Changed in place.
    """
    arrival, of = requests.arrival, out.of
    N = arrival.size
    i = 0
    left = N
    while left > 0:
        first = 0
        for g in range(1, of.size):
            if of[g].ends < of[first].ends:
                first = g
        if i < N and arrival[i] < of[first].ends:
            g = _bind(i, requests, setting, state)
            join_queue(i, g, state)
            if of[g].ends == np.inf:
                _begin_step(g, arrival[i], requests, setting, state, window, out)
            i += 1
        else:
            now = of[first].ends
            left -= _end_step(first, now, requests, state, out)
            _begin_step(first, now, requests, setting, state, window, out)


@kernel
def _bind(i: int, requests: Requests, setting: Setting, state: State) -> int:
    """Return the worker to which request i is bound."""
    f = 0  # a single front end
    if setting.code == BAND:
        width = BAND_UNIT * setting.parameters.width
        return bind_in_band(width, requests.preference, requests.profile[i], state.running, state.queued)
    nothing = state.load[:0]
    shown = Shown(state.load, state.running, state.queued, state.queued_tokens, nothing)
    turn = state.sight.turns[f]
    return bind(setting.code, i, setting.parameters, shown, nothing, nothing, requests.uniforms, turn)


@kernel
def _begin_step(
    g: int, now: float, requests: Requests, setting: Setting, state: State, window: Record, out: Decoders
) -> None:
    """Admit from the queue of worker g while it has a free slot, and begin a step if it has anything to run."""
    of, load, running = out.of[g], state.load, state.running
    while state.queued[g] > 0 and running[g] < setting.slots_per_worker:
        i = take_head(g, state)
        running[g] += 1
        load[g] += requests.prompt[i]
        state.start_clock[i] = now
        column = (of.own_step + requests.output[i]) % out.last.shape[1]
        out.next_to_end[i] = out.last[g, column]
        out.last[g, column] = i
        if setting.expert_layers > 0:
            join_experts(requests.unused[requests.profile[i]], g, state)
    if running[g] == 0:
        of.ends = np.inf
        return
    count_experts(g, setting.expert_layers, state)
    alone, experts = slice(g, g + 1), state.experts[g]
    seconds = seconds_of_step(setting, load[alone], running[alone], state.experts[alone], running[g])
    of.ends = now + seconds
    of.own_step += 1
    if window.begin <= now < window.end:
        of.steps += 1
        of.seconds += seconds
        of.running += running[g]
        of.experts += experts
        of.request_seconds += seconds * running[g]


@kernel
def _end_step(g: int, now: float, requests: Requests, state: State, out: Decoders) -> int:
    """Let all requests of worker g grow by a token, and those end that are complete; returns how many."""
    state.load[g] += state.running[g]
    column = out.of[g].own_step % out.last.shape[1]
    i = out.last[g, column]
    out.last[g, column] = -1
    ended = 0
    while i >= 0:
        out.finish[i] = now
        state.load[g] -= requests.prompt[i] + requests.output[i]
        state.running[g] -= 1
        ended += 1
        if requests.unused.size > 0:
            leave_experts(requests.unused[requests.profile[i]], g, state.running[g], state)
        i = out.next_to_end[i]
    return ended
