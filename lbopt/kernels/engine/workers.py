"""Workers that join, drain and leave; what a worker that left was doing goes back to the head of the router's pool.

Definition: the manual, page *engine*, "A decision", 1.
"""

import math

from lbopt.kernels.compile import kernel
from lbopt.kernels.engine.memory import lose
from lbopt.kernels.engine.queues import take_head
from lbopt.kernels.engine.state import JOIN, LEAVE, Engine
from lbopt.kernels.routing.books import entry_of
from lbopt.kernels.simulation.sight import Sight
from lbopt.kernels.simulation.state import Requests, Setting, State


@kernel
def come_and_go(requests: Requests, setting: Setting, state: State) -> None:
    """Let all events happen that are due.

    Parameters
    ----------
    requests, setting
        Of the run.
    state
        Changed in place.
    """
    engine, progress = state.engine, state.progress
    rules = engine.rules
    tail = progress.pool_head  # those that come back are put in front of it
    while rules.next_event < engine.event_clock.size and engine.event_clock[rules.next_event] <= progress.clock:
        w = engine.event_worker[rules.next_event]
        kind = engine.event_kind[rules.next_event]
        rules.next_event += 1
        engine.is_open[w] = 1 if kind == JOIN else 0
        if kind == LEAVE:
            while state.queued[w] > 0:
                _return(take_head(w, state), w, requests, setting, state)
            for seat in range(state.running[w]):
                _return(engine.seats[w, seat], w, requests, setting, state)
            progress.active -= state.running[w]
            state.running[w] = 0
            state.load[w] = 0
            engine.used[w] = 0
            engine.moved[w] = 0
    _sort(progress.pool_head, tail, state)


@kernel
def _return(i: int, w: int, requests: Requests, setting: Setting, state: State) -> None:
    """Put request `i`, which was on worker `w`, in front of the pool, with nothing computed.

    Parameters
    ----------
    i, w
        Request and worker.
    requests, setting
        Of the run.
    state
        Changed in place.
    """
    progress = state.progress
    track = state.engine.tracks[i]
    lose(track)
    track.blocks = 0
    state.engine.size[i] = track.tokens
    state.engine.tally.returned += 1
    state.worker[i] = -1
    progress.pool_head -= 1  # there is room: it was taken out of the pool before
    state.pool[progress.pool_head] = i
    books = state.sight.books
    if books.size > 0:
        books[i % len(books), w] -= entry_of(setting.code, requests.prompt[i])


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
    """Write the numbers of the open workers into `Engine.open_workers`; returns how many there are."""
    engine = state.engine
    count = 0
    for w in range(engine.is_open.size):
        if engine.is_open[w] == 1:
            engine.open_workers[count] = w
            count += 1
    return count


@kernel
def show_open(f: int, count: int, sight: Sight, engine: Engine) -> None:
    """Write what front end `f` sees of the `count` open workers into the `shown_` arrays.

    Parameters
    ----------
    f, count
        Front end, and open workers.
    sight
        What is seen.
    engine
        `Engine.open_workers` is read; the arrays `shown_` are changed in place.
    """
    for place in range(count):
        w = engine.open_workers[place]
        engine.shown_load[place] = sight.load[f, w]
        engine.shown_running[place] = sight.running[f, w]
        engine.shown_queued[place] = sight.queued[f, w]
        engine.shown_tokens[place] = sight.queued_tokens[f, w]
        if sight.own.shape[1] > 0:
            engine.shown_own[place] = sight.own[f, w]


@kernel
def awaited(state: State) -> float:
    """Return when something happens by itself although nothing runs, s: an event, or memory that arrives."""
    engine, clock = state.engine, state.progress.clock
    until = math.inf
    if engine.rules.next_event < engine.event_clock.size:
        until = engine.event_clock[engine.rules.next_event]
    for w in range(state.queued.size):
        if state.queued[w] > 0 and engine.ready[state.queue_head[w]] > clock:
            until = min(until, engine.ready[state.queue_head[w]])
    return until
