"""Requests in: revelation, the pool, the workers' own queues, and the start of a request.

A request that becomes known joins the pool. A pooled decision starts some of it; immediate admission binds it from its
head on, in order, so that it is empty again unless the rule holds the head back: then none overtakes it.

The innermost functions take bare arrays and records: taking them out of a group once per request costs more than the
work itself.

Does a decision matter? It has a real choice where placements that fill as many slots as they can differ in loads.

Without one every policy ties. Told in O(G + n), without enumeration:

* more wait than there are slots: *which*, as soon as two of them differ in size;
* all of them are admitted, to two or more workers: *where*, if a slot stays empty or two of them differ in size, and
  the open workers differ in load or one of them has two slots to stack requests on.

This is exact but for coincidences, in which different placements happen to give the same loads (two workers of 0 and 5
tokens with two and one slots, and two requests of 5).
"""

from lbopt.kernels.arrays import Floats, Ints, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.queues import count_to_compute, join_queue_of, let_in_at
from lbopt.kernels.detail.state import blocks_of
from lbopt.kernels.detail.workers import list_open, show_open
from lbopt.kernels.routing.band import bind_in_band
from lbopt.kernels.routing.books import entry_of
from lbopt.kernels.routing.bypass import bind_bypassing
from lbopt.kernels.routing.codes import BAND, BAND_UNIT, BR_0_BYPASS, DYNAMO, IQR, TPU_INFERENCE
from lbopt.kernels.routing.fifo import bind
from lbopt.kernels.routing.iqr import bind_iqr
from lbopt.kernels.routing.state import Shown
from lbopt.kernels.simulation.state import (
    TAKE_STEP,
    Requests,
    Setting,
    State,
    join_queue,
    note_blocks,
    note_sent,
    take_head,
)
from lbopt.kernels.simulation.step import join_experts


@kernel
def enter(
    i: int,
    w: int,
    k: int,
    prompt: Ints,
    output: Ints,
    load: Ints,
    running: Ints,
    endings: Records,
    calendar: Ints,
    progress: Record,
) -> None:
    """Let request i start on worker w at decision k: it holds its prompt, and the calendar says when it ends.

    Parameters
    ----------
    i, w, k
        Request, worker, and the steps taken so far.
    prompt, output
        int64 (N,), tokens and steps of each request.
    load, running
        int64 (G,), tokens and requests of each worker; changed in place.
    endings, calendar, progress
        As in `State`; changed in place.
    """
    load[w] += prompt[i]
    running[w] += 1
    e = progress.unused_ending
    ending = endings[e]
    progress.unused_ending = ending.following
    bucket = (k + output[i]) % calendar.size
    ending.following = calendar[bucket]
    ending.worker = w
    ending.tokens = prompt[i] + output[i]
    ending.request = i
    calendar[bucket] = e


@kernel
def start(i: int, w: int, requests: Requests, state: State) -> None:
    """Start the single request i on worker w now.

    Parameters
    ----------
    i, w
        Request and worker.
    requests
        Of the run.
    state
        Changed in place.
    """
    progress = state.progress
    k = progress.step
    state.worker[i] = w
    state.start_step[i] = k
    state.start_clock[i] = progress.clock
    enter(i, w, k, requests.prompt, requests.output, state.load, state.running, state.endings, state.calendar, progress)
    progress.active += 1
    progress.admitted += 1


@kernel
def _use_experts(i: int, w: int, requests: Requests, state: State) -> None:
    """Count the experts of request i on worker w from now on.

    Parameters
    ----------
    i, w
        Request and worker.
    requests
        Of the run.
    state
        Changed in place.
    """
    join_experts(requests.unused[requests.profile[i]], w, state.unused, state.experts_changed)


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
def admit(reach: int, requests: Requests, state: State) -> None:
    """Start the chosen requests among the first `reach` of the pool; the others keep their order.

    Survivors in front of the last admitted one move up, so the cost is `reach`, not the length of the pool.
    """
    progress, pool, choice = state.progress, state.pool, state.choice
    prompt, output = requests.prompt, requests.output
    load, running, endings, calendar = state.load, state.running, state.endings, state.calendar
    worker, start_step, start_clock = state.worker, state.start_step, state.start_clock
    k, now = progress.step, progress.clock
    head = progress.pool_head
    keep = head + reach
    if requests.unused.size > 0:
        for position in range(reach):
            if choice[position] >= 0:
                _use_experts(pool[head + position], choice[position], requests, state)
    admitted = 0
    for position in range(reach - 1, -1, -1):
        i = pool[head + position]
        w = choice[position]
        if w < 0:
            keep -= 1
            pool[keep] = i
        else:
            worker[i] = w
            start_step[i] = k
            start_clock[i] = now
            enter(i, w, k, prompt, output, load, running, endings, calendar, progress)
            admitted += 1
    progress.pool_head = keep
    progress.active += admitted
    progress.admitted += admitted


@kernel
def drain_queues(requests: Requests, setting: Setting, state: State) -> None:
    """Immediate admission: every worker takes from the head of its own queue while it has a free slot."""
    progress, queued, running = state.progress, state.queued, state.running
    if progress.queued == 0:
        return
    head, before = state.scratch_load, state.scratch_running
    head[:] = state.queue_head
    before[:] = queued
    for w in range(queued.size):
        while queued[w] > 0 and running[w] < setting.slots_per_worker:
            start(take_head(w, state), w, requests, state)
    if requests.unused.size > 0:  # apart, as in `bind_pool`
        for w in range(queued.size):
            i = head[w]
            for _ in range(before[w] - queued[w]):
                _use_experts(i, w, requests, state)
                i = state.next_in_queue[i]


@kernel
def bind_next(w: int, requests: Requests, setting: Setting, state: State) -> None:
    """Immediate admission: bind the head of the pool to worker w, where it starts at once if a slot is free.

    Parameters
    ----------
    w
        Worker; -1 holds the request back, and all behind it, until the next step.
    requests, setting
        Of the run.
    state
        Changed in place.
    """
    progress = state.progress
    if w < 0:
        progress.phase = TAKE_STEP
        return
    i = state.pool[progress.pool_head]
    progress.pool_head += 1
    progress.decisions += 1
    progress.real_choices += loads_differ(state.load, state.queued_tokens)
    if state.sight.reports.stale == 1:
        f = i % len(state.sight.load)
        note_sent(f, w, state.size[i], state.slots[w], state.sight)
        if state.sight.committed.shape[1] > 0:
            note_blocks(f, w, blocks_of(state.size[i], state.detail.rules), state.sight)
    if state.detail.rules.on == 1:
        join_queue_of(i, w, state)
        let_in_at(w, state)
    elif state.running[w] < setting.slots_per_worker:
        start(i, w, requests, state)
        if requests.unused.size > 0:
            _use_experts(i, w, requests, state)
    else:
        state.worker[i] = w
        progress.queued += 1
        join_queue(
            i,
            w,
            requests.prompt,
            state.queued,
            state.queued_tokens,
            state.queue_head,
            state.queue_tail,
            state.next_in_queue,
        )


@kernel
def bind_pool(requests: Requests, setting: Setting, state: State) -> None:
    """Immediate admission by a compiled rule: `bind_next` from the head of the pool, until it is empty or held."""
    progress, pool = state.progress, state.pool
    prompt, output, size, uniforms = requests.prompt, requests.output, state.size, requests.uniforms
    load, running, endings, calendar = state.load, state.running, state.endings, state.calendar
    queued, queued_tokens = state.queued, state.queued_tokens
    queue_head, queue_tail, next_in_queue = state.queue_head, state.queue_tail, state.next_in_queue
    worker, start_step, start_clock = state.worker, state.start_step, state.start_clock
    code, parameters, slots_per_worker = setting.code, setting.parameters, setting.slots_per_worker
    sight = state.sight
    stale, front_ends = sight.reports.stale == 1, len(sight.load)
    f = 0  # the front end, and what it sees
    turn = sight.turns[f]
    shown = Shown(sight.load[f], sight.running[f], sight.queued[f], sight.queued_tokens[f], sight.own[f])
    preference, profile = requests.preference, requests.profile
    k, now = progress.step, progress.clock
    head, tail = progress.pool_head, progress.pool_tail
    noted = sight.books.size > 0
    in_detail = state.detail.rules.on == 1
    detail = state.detail
    num_open = list_open(state) if in_detail else load.size
    if num_open == 0:
        return
    nothing = detail.cache.to_compute[:0]
    counts = in_detail and detail.rules.budget > 0 and code in (TPU_INFERENCE, DYNAMO)
    to_compute = nothing
    bound = 0
    started = 0
    real_choices = 0
    for position in range(head, tail):
        i = pool[position]
        if front_ends > 1:
            f = i % front_ends
            turn = sight.turns[f]
            shown = Shown(sight.load[f], sight.running[f], sight.queued[f], sight.queued_tokens[f], sight.own[f])
        if num_open < load.size:
            show_open(f, num_open, sight, detail)
            turn.next_worker %= num_open
            shown = Shown(
                detail.shown_load[:num_open],
                detail.shown_running[:num_open],
                detail.shown_queued[:num_open],
                detail.shown_tokens[:num_open],
                detail.shown_own[:num_open],
            )
        if code == BR_0_BYPASS:  # a function in between would cost more than the rules themselves
            w = bind_bypassing(parameters, slots_per_worker, size[i], shown)
        elif code == IQR:
            w = bind_iqr(parameters, shown)
        elif code == BAND:
            w = bind_in_band(BAND_UNIT * parameters.width, preference, profile[i], shown.running, shown.queued)
        else:
            if counts:
                to_compute = count_to_compute(i, parameters.by_cache == 1, detail.open_workers[:num_open], state)
            w = bind(code, i, parameters, shown, to_compute, nothing, uniforms, turn)
        if w < 0:
            break
        if num_open < load.size:
            w = detail.open_workers[w]
        bound += 1
        real_choices += loads_differ(load, queued_tokens)
        worker[i] = w
        if noted:
            sight.books[f, w] += entry_of(code, prompt[i])
        if stale:
            note_sent(f, w, size[i], state.slots[w], sight)
        if in_detail:
            join_queue_of(i, w, state)
            let_in_at(w, state)
        elif running[w] < slots_per_worker:
            start_step[i] = k
            start_clock[i] = now
            enter(i, w, k, prompt, output, load, running, endings, calendar, progress)
            started += 1
        else:
            join_queue(i, w, prompt, queued, queued_tokens, queue_head, queue_tail, next_in_queue)
    if requests.unused.size > 0:  # apart from the loop above, which is slower for all rules with it inside
        for position in range(head, head + bound):
            if start_step[pool[position]] == k:
                _use_experts(pool[position], worker[pool[position]], requests, state)
    progress.pool_head = head + bound
    progress.decisions += bound
    progress.real_choices += real_choices
    if not in_detail:
        progress.queued += bound - started
        progress.active += started
        progress.admitted += started


@kernel
def has_real_choice(load: Ints, running: Ints, slots_per_worker: int, pool: Ints, prompt: Ints) -> int:
    """Return 1 where the pooled decision has a real choice, else 0.

    Parameters
    ----------
    load, running
        int64 (G,), tokens and requests of each worker.
    slots_per_worker
        B.
    pool
        int64 (n,), the numbers of the requests that wait.
    prompt
        int64 (N,), tokens, by request number.
    """
    n = pool.size
    if n == 0 or load.size == 1:
        return 0  # a single worker waits for nobody, whatever it holds
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
