"""Requests in: revelation, the pool, the workers' own queues, and the start of a request.

A request that becomes known joins the pool. A pooled decision starts some of it; immediate admission binds it from its
head on, in order, so that it is empty again unless the rule holds the head back: then none overtakes it.

Does a decision matter? It has a real choice where placements that fill as many slots as they can differ in loads.

Without one every policy ties. Told in O(G + n), without enumeration:

* more wait than there are slots: *which*, as soon as two of them differ in size;
* all of them are admitted, to two or more workers: *where*, if a slot stays empty or two of them differ in size, and
  the open workers differ in load or one of them has two slots to stack requests on.

This is exact but for coincidences, in which different placements happen to give the same loads (two workers of 0 and 5
tokens with two and one slots, and two requests of 5).
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.queues import count_to_compute, join_queue_of, let_in_at
from lbopt.kernels.detail.workers import list_open, show_open
from lbopt.kernels.routing.band import bind_in_band
from lbopt.kernels.routing.books import entry_of
from lbopt.kernels.routing.bypass import bind_bypassing
from lbopt.kernels.routing.codes import BAND, BAND_UNIT, BR_0_BYPASS, DYNAMO, EXTERNAL, IQR, TPU_INFERENCE
from lbopt.kernels.routing.fifo import bind
from lbopt.kernels.routing.iqr import bind_iqr
from lbopt.kernels.routing.state import Shown
from lbopt.kernels.simulation.eligible import list_eligible
from lbopt.kernels.simulation.state import (
    END_DECISION,
    Requests,
    Setting,
    State,
    join_queue,
    note_sent,
    take_head,
)
from lbopt.kernels.simulation.step import join_experts


class Starting(NamedTuple):
    """What the start of a request changes; passed array by array, which is faster than to look them up each time."""

    load: Ints
    running: Ints
    endings: Records
    calendar: Ints
    worker: Ints
    start_step: Ints
    start_clock: Floats


@kernel
def starting_of(state: State) -> Starting:
    """Return the arrays of `Starting`."""
    return Starting(
        *(state.load, state.running, state.endings, state.calendar, state.worker, state.start_step, state.start_clock)
    )


@kernel
def start(i: int, w: int, prompt: int, output: int, of: Starting, progress: Record) -> None:
    """Let request i start on worker w now: it holds its prompt, and the calendar says when it ends."""
    of.worker[i] = w
    of.start_step[i] = progress.step
    of.start_clock[i] = progress.clock
    of.load[w] += prompt
    of.running[w] += 1
    e = progress.unused_ending
    ending = of.endings[e]
    progress.unused_ending = ending.following
    bucket = (progress.step + output) % of.calendar.size
    ending.following = of.calendar[bucket]
    ending.worker = w
    ending.tokens = prompt + output
    ending.request = i
    of.calendar[bucket] = e
    progress.active += 1
    progress.admitted += 1


@kernel
def _use_experts(i: int, w: int, requests: Requests, state: State) -> None:
    """Count the experts of request i on worker w from now on."""
    join_experts(requests.unused[requests.profile[i]], w, state)


@kernel
def num_known(progress: Record) -> int:
    """Requests known before the decision of this step that have not started: in the pool, or queued at a worker."""
    return progress.pool_tail - progress.pool_head + progress.queued


@kernel
def known_until(num_requests: int, arrival: Floats, reveal_target: int, progress: Record) -> int:
    """Return the first request that stays undiscovered in the decision of this step.

    Parameters
    ----------
    num_requests
        N, of the whole run.
    arrival
        float64 (N,), s, ascending; not read in a closed loop.
    reveal_target
        Requests kept waiting in a closed loop; negative = requests become known at their arrival.
    progress
        As in `State`.
    """
    first = progress.undiscovered
    if reveal_target >= 0:
        return min(num_requests, first + max(0, reveal_target - num_known(progress)))
    now = progress.clock
    while first < num_requests and arrival[first] <= now:
        first += 1
    return first


@kernel
def reveal_to_pool(requests: Requests, setting: Setting, state: State) -> None:
    """Let newly known requests join the end of the pool.

    They became known at their arrival, or now in a closed loop.
    """
    progress, pool, arrival = state.progress, state.pool, requests.arrival
    reveal_step, reveal_clock = state.reveal_step, state.reveal_clock
    k, now = progress.step, progress.clock
    first, tail = progress.undiscovered, progress.pool_tail
    until = known_until(requests.prompt.size, arrival, setting.reveal_target, progress)
    for i in range(first, until):
        reveal_step[i] = k
        reveal_clock[i] = arrival[i] if arrival.size > 0 else now
        pool[tail] = i
        tail += 1
    progress.pool_tail = tail
    progress.undiscovered = until


@kernel
def note_bound(f: int, i: int, w: int, code: int, requests: Requests, state: State) -> None:
    """Note that front end `f` sends request `i` to worker `w`: in its books, and in what stale sight sees."""
    sight = state.sight
    if sight.books.size > 0:
        sight.books[f, w] += entry_of(code, requests.prompt[i])
    if sight.reports.stale == 1:
        note_sent(f, i, w, state)


@kernel
def carry_out_choice(reach: int, requests: Requests, setting: Setting, state: State) -> None:
    """Start the chosen requests among the first `reach` of the pool, or send them to their workers' queues.

    The others keep their order. Survivors in front of the last admitted one move up, so the cost is `reach`, not the
    length of the pool.
    """
    progress, pool, choice = state.progress, state.pool, state.choice
    head, f = progress.pool_head, 0  # a pool has one front end
    prompt, output, of = requests.prompt, requests.output, starting_of(state)
    in_detail, with_experts = state.detail.rules.on == 1, requests.unused.size > 0
    noted = state.sight.books.size > 0 or state.sight.reports.stale == 1
    for position in range(reach):
        i, w = pool[head + position], choice[position]
        if w < 0:
            continue
        if noted:
            note_bound(f, i, w, setting.code, requests, state)
        if in_detail:
            join_queue_of(i, w, state)
        else:
            start(i, w, prompt[i], output[i], of, progress)
            if with_experts:
                _use_experts(i, w, requests, state)
    keep = head + reach
    for position in range(reach - 1, -1, -1):
        if choice[position] < 0:
            keep -= 1
            pool[keep] = pool[head + position]
    progress.pool_head = keep


@kernel
def drain_queues(requests: Requests, setting: Setting, state: State) -> None:
    """Let every worker take from the head of its own queue while it has a free slot."""
    progress, queued, running = state.progress, state.queued, state.running
    if progress.queued == 0:
        return
    of = starting_of(state)
    for w in range(queued.size):
        if state.detail.rules.on == 1:
            let_in_at(w, state)
        else:
            while queued[w] > 0 and running[w] < setting.slots_per_worker:
                i = take_head(w, state)
                start(i, w, requests.prompt[i], requests.output[i], of, progress)
                if requests.unused.size > 0:
                    _use_experts(i, w, requests, state)


@kernel
def bind_next(w: int, requests: Requests, setting: Setting, state: State) -> None:
    """Immediate admission: bind the head of the pool to worker w.

    Parameters
    ----------
    w
        Worker; -1 holds the request back, and all behind it, until the next step.
    """
    if w < 0:
        state.progress.phase = END_DECISION
    else:
        bind_pool(w, requests, setting, state)


@kernel
def bind_pool(outside: int, requests: Requests, setting: Setting, state: State) -> None:
    """Immediate admission: bind requests from the head of the pool, until it is empty or held.

    A worker starts a request at once if it has a free slot. Where a request is held, so are all behind it of its kind.

    Parameters
    ----------
    outside
        Worker to which the outside binds the head of the pool, under the rule EXTERNAL.
    """
    pool, size, uniforms = state.pool, state.size, requests.uniforms
    progress, sight, detail, num_workers = state.progress, state.sight, state.detail, state.load.size
    prompt, output, of, with_experts = requests.prompt, requests.output, starting_of(state), requests.unused.size > 0
    slots_per_worker, queued_tokens = setting.slots_per_worker, state.queued_tokens
    noted = sight.books.size > 0 or sight.reports.stale == 1
    code, parameters = setting.code, setting.parameters
    front_ends = len(sight.load)
    f = 0  # the front end, and what it sees
    turn = sight.turns[f]
    shown = Shown(sight.load[f], sight.running[f], sight.queued[f], sight.queued_tokens[f], sight.own[f])
    in_detail = detail.rules.on == 1
    num_open = list_open(state) if in_detail else num_workers
    if num_open == 0:
        return
    counts = in_detail and detail.rules.budget > 0 and code in (TPU_INFERENCE, DYNAMO)
    nothing = detail.cache.to_compute[:0]
    to_compute = nothing
    head, tail = progress.pool_head, progress.pool_tail
    kinds, k, kept = len(requests.allowed), 0, head
    for k in range(kinds):
        state.marked[k] = 0
    for position in range(head, tail):
        i = pool[position]
        if kinds > 0:
            k = requests.kind[i]
            if state.marked[k] == 1:
                pool[kept] = i
                kept += 1
                continue
            num_open = list_eligible(k, requests.allowed, detail)
        if front_ends > 1 or kinds > 0:
            f = i % front_ends
            turn = sight.turns[k * front_ends + f]
            shown = Shown(sight.load[f], sight.running[f], sight.queued[f], sight.queued_tokens[f], sight.own[f])
        if num_open < num_workers:
            show_open(f, num_open, sight, detail)
            turn.next_worker %= num_open
            shown = Shown(
                detail.shown_load[:num_open],
                detail.shown_running[:num_open],
                detail.shown_queued[:num_open],
                detail.shown_tokens[:num_open],
                detail.shown_own[:num_open],
            )
        if code == EXTERNAL:
            w = outside
        elif code == BR_0_BYPASS:  # a function in between would cost more than the rules themselves
            w = bind_bypassing(parameters, slots_per_worker, size[i], shown)
        elif code == IQR:
            w = bind_iqr(parameters, shown)
        elif code == BAND:
            w = bind_in_band(
                BAND_UNIT * parameters.width, requests.preference, requests.profile[i], shown.running, shown.queued
            )
        else:
            if counts:
                to_compute = count_to_compute(i, parameters.by_cache == 1, detail.open_workers[:num_open], state)
            w = bind(code, i, parameters, shown, to_compute, nothing, uniforms, turn)
        if w < 0 and kinds == 0:
            break
        if w < 0:
            state.marked[k] = 1
            pool[kept] = i
            kept += 1
            continue
        if num_open < num_workers:
            w = detail.open_workers[w]
        progress.pool_head += 1
        progress.decisions += 1
        progress.real_choices += loads_differ(of.load, queued_tokens)
        if noted:
            note_bound(f, i, w, code, requests, state)
        if in_detail:
            join_queue_of(i, w, state)
            let_in_at(w, state)
        elif of.running[w] < slots_per_worker:
            start(i, w, prompt[i], output[i], of, progress)
            if with_experts:
                _use_experts(i, w, requests, state)
        else:
            join_queue(i, w, state)
        if code == EXTERNAL:
            return
    if kept > head:
        progress.pool_head, progress.pool_tail = head, kept


@kernel
def has_real_choice(load: Ints, running: Ints, slots_per_worker: int, pool: Ints, prompt: Ints) -> int:
    """Return 1 where the pooled decision has a real choice, else 0.

    Parameters
    ----------
    load, running
        int64 (G,), tokens and requests of each worker.
    pool
        int64 (n,), the numbers of the requests that wait.
    prompt
        int64 (N,), tokens, by request number.
    """
    n = pool.size
    if n == 0 or load.size == 1:
        return 0  # a single worker waits for none, whatever it holds
    slots = 0
    most = 0
    first = -1
    open_workers = 0
    uneven = False
    for g in range(load.size):
        free = slots_per_worker - running[g]
        if free > 0:
            slots += free
            most = max(most, free)
            open_workers += 1
            if first < 0:
                first = g
            elif load[g] != load[first]:
                uneven = True
    if slots == 0:
        return 0
    if n > slots or (n == slots and open_workers > 1 and (uneven or most > 1)):
        return _two_sizes(pool, prompt)
    if n == slots or open_workers == 1:
        return 0
    weighty = 0  # a slot stays empty: an empty prompt changes no load wherever it goes
    for position in range(n):
        if prompt[pool[position]] > 0:
            weighty += 1
            if uneven or (weighty > 1 and most > 1):
                return 1
    return 0


@kernel
def _two_sizes(pool: Ints, prompt: Ints) -> int:
    """Return 1 where two of the waiting requests differ in size."""
    for position in range(1, pool.size):
        if prompt[pool[position]] != prompt[pool[0]]:
            return 1
    return 0


@kernel
def loads_differ(load: Ints, queued_tokens: Ints) -> int:
    """Return 1 where two workers differ in resident plus queued tokens: the choice of an immediate binding."""
    for g in range(1, load.size):
        if load[g] + queued_tokens[g] != load[0] + queued_tokens[0]:
            return 1
    return 0
