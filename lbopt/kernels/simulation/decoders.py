"""Decoders that do not wait for each other: every worker steps at its own pace, and requests are bound on arrival.

Event-driven: the next event is the earliest end of a step, or the next arrival; ends go first where both fall together.
A worker admits from its own queue between its steps, and an idle one starts with the request that wakes it.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.band import bind_in_band
from lbopt.kernels.routing.codes import BAND, BAND_UNIT
from lbopt.kernels.routing.fifo import bind
from lbopt.kernels.routing.state import Shown
from lbopt.kernels.simulation.state import Requests, Setting, join_queue
from lbopt.kernels.simulation.step import count_of_worker, join_experts, leave_experts

#: The seconds from and to which steps are counted.
WINDOW = np.dtype([("begin", np.float64), ("end", np.float64)])


@by_reference
class Decoders(NamedTuple):
    """What comes out; all arrays are written."""

    worker: Ints  # int64 (N,)
    start: Floats  # float64 (N,), s: begin of the first step
    finish: Floats  # float64 (N,), s
    steps: Ints  # int64 (G,), steps that began in the window
    seconds: Floats  # float64 (G,), their sum
    running: Ints  # int64 (G,), requests of these steps, summed
    experts: Floats  # float64 (G,), different experts of a layer in these steps, summed
    request_seconds: Floats  # float64 (G,), requests of a step times its seconds, summed


@by_reference
class Workers(NamedTuple):
    """Everything that changes."""

    load: Ints  # int64 (G,), resident tokens
    running: Ints  # int64 (G,)
    queued: Ints  # int64 (G,), requests bound to the worker but not started
    queued_tokens: Ints  # int64 (G,)
    queue_head: Ints  # int64 (G,), request at the head of the worker's queue
    queue_tail: Ints  # int64 (G,)
    next_in_queue: Ints  # int64 (N,)
    own_step: Ints  # int64 (G,), steps that the worker has begun
    ends: Floats  # float64 (G,), s, when its step ends; infinite while it is idle
    last: Ints  # int64 (G, longest output + 1), first of the requests that end with step = column mod length
    next_to_end: Ints  # int64 (N,)
    unused: Floats  # float64 (G, L * E), see `experts`
    changed: Ints  # int64 (G,), see `experts`
    experts: Floats  # float64 (G,), see `experts`
    known_of: Floats  # float64 (G, L * E), see `experts`
    known_terms: Floats  # float64 (G, L * E), see `experts`


@kernel
def run_decoders(
    requests: Requests, setting: Setting, w: Workers, round_robin: Record, window: Record, out: Decoders
) -> None:
    """Run until all requests have ended.

    Parameters
    ----------
    requests, setting
        Of the run.
    w
        Idle workers; changed in place.
    round_robin
        `routing.state.ROUND_ROBIN`; changed in place.
    window
        WINDOW: steps that begin in it, the end left out, are counted in `out`.
    out
        Written.
    """
    prompt, arrival, ends = requests.prompt, requests.arrival, w.ends
    N, num_workers = prompt.size, out.steps.size
    i = 0
    left = N
    while left > 0:
        first = 0
        for g in range(1, num_workers):
            if ends[g] < ends[first]:
                first = g
        if i < N and arrival[i] < ends[first]:
            g = _bind(i, requests, setting, w, round_robin)
            out.worker[i] = g
            join_queue(i, g, prompt, w.queued, w.queued_tokens, w.queue_head, w.queue_tail, w.next_in_queue)
            if ends[g] == np.inf:
                _begin_step(g, arrival[i], requests, setting, w, window, out)
            i += 1
        else:
            now = ends[first]
            left -= _end_step(first, now, requests, w, out)
            _begin_step(first, now, requests, setting, w, window, out)


@kernel
def _bind(i: int, requests: Requests, setting: Setting, w: Workers, round_robin: Record) -> int:
    """Return the worker to which request i is bound.

    Parameters
    ----------
    i
        Request.
    requests, setting, round_robin
        As of `run_decoders`.
    w
        Read only.
    """
    if setting.code == BAND:
        width = BAND_UNIT * setting.parameters.width
        return bind_in_band(width, requests.preference, requests.profile[i], w.running, w.queued)
    shown = Shown(w.load, w.running, w.queued, w.queued_tokens, w.load[:0])
    return bind(setting.code, i, setting.parameters, shown, w.load[:0], w.load[:0], requests.uniforms, round_robin)


@kernel
def _begin_step(
    g: int, now: float, requests: Requests, setting: Setting, w: Workers, window: Record, out: Decoders
) -> None:
    """Admit from the queue of worker g while it has a free slot, and begin a step if it has anything to run.

    Parameters
    ----------
    g, now
        Worker, and the time in s.
    requests, setting, window
        As of `run_decoders`.
    w, out
        Changed in place.
    """
    while w.queued[g] > 0 and w.running[g] < setting.slots_per_worker:
        i = w.queue_head[g]
        w.queue_head[g] = w.next_in_queue[i]
        w.queued[g] -= 1
        w.queued_tokens[g] -= requests.prompt[i]
        w.running[g] += 1
        w.load[g] += requests.prompt[i]
        out.start[i] = now
        column = (w.own_step[g] + requests.output[i]) % w.last.shape[1]
        w.next_to_end[i] = w.last[g, column]
        w.last[g, column] = i
        if setting.expert_layers > 0:
            join_experts(requests.unused[requests.profile[i]], g, w.unused, w.changed)
    if w.running[g] == 0:
        w.ends[g] = np.inf
        return
    if w.changed[g] == 1:
        count_of_worker(g, setting.expert_layers, w.unused, w.changed, w.experts, w.known_of, w.known_terms)
    seconds = setting.fixed_seconds + setting.seconds_per_token * w.load[g] + setting.seconds_per_expert * w.experts[g]
    if setting.seconds_of_running.size > 0:
        seconds += setting.seconds_of_running[w.running[g]]
    w.ends[g] = now + seconds
    w.own_step[g] += 1
    if window.begin <= now < window.end:
        out.steps[g] += 1
        out.seconds[g] += seconds
        out.running[g] += w.running[g]
        out.experts[g] += w.experts[g]
        out.request_seconds[g] += seconds * w.running[g]


@kernel
def _end_step(g: int, now: float, requests: Requests, w: Workers, out: Decoders) -> int:
    """Let all requests of worker g grow by a token, and those end that are complete; returns how many.

    Parameters
    ----------
    g, now
        Worker, and the time in s.
    requests
        Of the run.
    w, out
        Changed in place.
    """
    w.load[g] += w.running[g]
    column = w.own_step[g] % w.last.shape[1]
    i = w.last[g, column]
    w.last[g, column] = -1
    ended = 0
    while i >= 0:
        out.finish[i] = now
        w.load[g] -= requests.prompt[i] + requests.output[i]
        w.running[g] -= 1
        ended += 1
        if requests.unused.size > 0:
            leave_experts(requests.unused[requests.profile[i]], g, w.running[g], w.unused, w.changed)
        i = w.next_to_end[i]
    return ended
