"""What a decision begins and ends with: workers join, drain and leave, memory is made to suffice, queues are let in.

What a worker that left was doing goes back to the head of the router's pool.

Definition: the manual, page *detail*, "A decision", 1.
"""

import math

from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.gate import let_in_gated
from lbopt.kernels.detail.pausing import carry_out
from lbopt.kernels.detail.queues import let_in, make_fit
from lbopt.kernels.detail.state import JOIN, LEAVE, Detail, lose
from lbopt.kernels.gating import VLLM
from lbopt.kernels.prefix_cache import forget_all
from lbopt.kernels.routing.books import strike
from lbopt.kernels.simulation.state import Requests, Setting, Sight, State, take_head


@kernel
def come_and_go(requests: Requests, setting: Setting, state: State) -> None:
    """Let all events happen that are due.

    Parameters
    ----------
    state
        Changed in place.
    """
    detail, progress = state.detail, state.progress
    rules = detail.rules
    tail = progress.pool_head  # those that come back are put in front of it
    while rules.next_event < detail.event_clock.size and detail.event_clock[rules.next_event] <= progress.clock:
        w = detail.event_worker[rules.next_event]
        kind = detail.event_kind[rules.next_event]
        rules.next_event += 1
        detail.is_open[w] = 1 if kind == JOIN else 0
        if kind == LEAVE:
            while state.queued[w] > 0:
                _return(take_head(w, state), w, requests, setting, state)
            for seat in range(state.running[w]):
                _return(detail.seats[w, seat], w, requests, setting, state)
            progress.active -= state.running[w]
            state.running[w] = 0
            state.load[w] = 0
            detail.used[w] = 0
            detail.moved[w] = 0
            if rules.cache_blocks > 0:
                forget_all(w, detail.cache)
    _sort(progress.pool_head, tail, state)


@kernel
def _return(i: int, w: int, requests: Requests, setting: Setting, state: State) -> None:
    """Put request `i`, which was on worker `w`, in front of the pool, with nothing computed.

    Parameters
    ----------
    state
        Changed in place.
    """
    progress = state.progress
    track = state.detail.tracks[i]
    lose(track)
    track.blocks = 0
    state.detail.size[i] = track.tokens
    state.detail.tally.returned += 1
    state.worker[i] = -1
    progress.pool_head -= 1  # there is room: it was taken out of the pool before
    state.pool[progress.pool_head] = i
    strike(i, w, setting.code, requests.prompt, state.sight.books)


@kernel
def _sort(first: int, end: int, state: State) -> None:
    """Sort these places of the pool by the requests' numbers."""
    pool = state.pool
    for place in range(first + 1, end):
        i = pool[place]
        at = place
        while at > first and pool[at - 1] > i:
            pool[at] = pool[at - 1]
            at -= 1
        pool[at] = i


@kernel
def list_open(state: State) -> int:
    """Write the numbers of the open workers into `Detail.open_workers`; returns how many there are."""
    detail = state.detail
    count = 0
    for w in range(detail.is_open.size):
        if detail.is_open[w] == 1:
            detail.open_workers[count] = w
            count += 1
    return count


@kernel
def show_open(f: int, count: int, sight: Sight, detail: Detail) -> None:
    """Write what front end `f` sees of the `count` open workers into the `shown_` arrays.

    Parameters
    ----------
    detail
        `Detail.open_workers` is read; the arrays `shown_` are changed in place.
    """
    for place in range(count):
        w = detail.open_workers[place]
        detail.shown_load[place] = sight.load[f, w]
        detail.shown_running[place] = sight.running[f, w]
        detail.shown_queued[place] = sight.queued[f, w]
        detail.shown_tokens[place] = sight.queued_tokens[f, w]
        if sight.own.shape[1] > 0:
            detail.shown_own[place] = sight.own[f, w]


@kernel
def awaited(state: State) -> float:
    """Return when something happens by itself although nothing runs, s: an event, or memory that arrives."""
    detail, clock = state.detail, state.progress.clock
    until = math.inf
    if detail.rules.next_event < detail.event_clock.size:
        until = detail.event_clock[detail.rules.next_event]
    for w in range(state.queued.size):
        if state.queued[w] > 0 and detail.ready[state.queue_head[w]] > clock:
            until = min(until, detail.ready[state.queue_head[w]])
    return until


@kernel
def begin_decision(requests: Requests, setting: Setting, state: State) -> None:
    """Let workers come and go, pause what a plan names, and make what runs fit into memory."""
    come_and_go(requests, setting, state)
    carry_out(state)
    make_fit(state)


@kernel
def end_decision(state: State) -> None:
    """Let the heads of queues run; where nothing runs, the plan of pausing is forgotten and the gate opens first."""
    if state.progress.active == 0:
        state.detail.pausing.terms.in_force = 0
        state.detail.gate.terms.shut = 0
    if state.detail.gate.terms.code >= VLLM:
        let_in_gated(state)
    else:
        let_in(state)
