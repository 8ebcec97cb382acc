"""Requests in: revelation, the pool, the workers' own queues, and the start of a request.

Everybody who becomes known joins the pool. A pooled decision starts some of it; immediate admission binds it from its
head on, in order, so that it is empty again unless the rule holds the head back: then nobody overtakes it.

The innermost functions take bare arrays: taking an array out of a named tuple counts a reference, and doing that once
per request costs more than the work itself.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.band import bind_in_band
from lbopt.kernels.routing.bypass import bind_bypassing
from lbopt.kernels.routing.codes import BAND, BAND_UNIT, BAND_WIDTH, BR_0_BYPASS, IQR
from lbopt.kernels.routing.fifo import bind
from lbopt.kernels.routing.iqr import bind_iqr
from lbopt.kernels.simulation.experts import join_experts
from lbopt.kernels.simulation.real_choice import loads_differ
from lbopt.kernels.simulation.tables import (
    ACTIVE,
    ADMITTED,
    DECISIONS,
    NEXT,
    ON_WORKER,
    PHASE,
    POOL_HEAD,
    POOL_TAIL,
    QUEUED,
    REAL_CHOICES,
    REQUEST,
    ROUND_ROBIN_AT,
    STEP,
    TAKE_STEP,
    TOKENS,
    UNDISCOVERED,
    UNUSED_RECORD,
    Requests,
    Setting,
    State,
)


@kernel
def enter(
    i: int,
    w: int,
    k: int,
    prompt: Ints,
    output: Ints,
    load: Ints,
    running: Ints,
    records: Ints,
    calendar: Ints,
    counters: Ints,
) -> None:
    """Let request i start on worker w at decision k: it holds its prompt, and a record says where it will end."""
    load[w] += prompt[i]
    running[w] += 1
    record = counters[UNUSED_RECORD]
    counters[UNUSED_RECORD] = records[record, NEXT]
    bucket = (k + output[i]) % calendar.size
    records[record, NEXT] = calendar[bucket]
    records[record, ON_WORKER] = w
    records[record, TOKENS] = prompt[i] + output[i]
    records[record, REQUEST] = i
    calendar[bucket] = record


@kernel
def start(i: int, w: int, requests: Requests, state: State) -> None:
    """Start the single request i on worker w now."""
    counters = state.counters
    k = counters[STEP]
    state.worker[i] = w
    state.start_step[i] = k
    state.start_clock[i] = state.clock[0]
    enter(i, w, k, requests.prompt, requests.output, state.load, state.running, state.records, state.calendar, counters)
    counters[ACTIVE] += 1
    counters[ADMITTED] += 1


@kernel
def _use_experts(i: int, w: int, requests: Requests, state: State) -> None:
    join_experts(requests.unused[requests.profile[i]], w, state.unused, state.experts_changed)


@kernel
def num_known(counters: Ints) -> int:
    """Requests known before the decision of this step that have not started: in the pool, or queued at a worker."""
    return counters[POOL_TAIL] - counters[POOL_HEAD] + counters[QUEUED]


@kernel
def known_until(num_requests: int, arrival: Floats, reveal_target: int, counters: Ints, clock: Floats) -> int:
    """First request that stays undiscovered in the decision of this step."""
    first = counters[UNDISCOVERED]
    if reveal_target >= 0:
        return min(num_requests, first + max(0, reveal_target - num_known(counters)))
    now = clock[0]
    while first < num_requests and arrival[first] <= now:
        first += 1
    return first


@kernel
def reveal_to_pool(requests: Requests, setting: Setting, state: State) -> None:
    """Let newly known requests join the end of the pool.

    They became known at their arrival, or now in a closed loop.
    """
    counters, pool, arrival = state.counters, state.pool, requests.arrival
    reveal_step, reveal_clock = state.reveal_step, state.reveal_clock
    k, now = counters[STEP], state.clock[0]
    first, tail = counters[UNDISCOVERED], counters[POOL_TAIL]
    until = known_until(requests.prompt.size, arrival, setting.reveal_target, counters, state.clock)
    for i in range(first, until):
        reveal_step[i] = k
        reveal_clock[i] = arrival[i] if arrival.size > 0 else now
        pool[tail] = i
        tail += 1
    counters[POOL_TAIL] = tail
    counters[UNDISCOVERED] = until


@kernel
def admit(reach: int, requests: Requests, state: State) -> None:
    """Start the chosen requests among the first `reach` of the pool; the others keep their order.

    Survivors in front of the last admitted one move up, so the cost is `reach`, not the length of the pool.
    """
    counters, pool, choice = state.counters, state.pool, state.choice
    prompt, output = requests.prompt, requests.output
    load, running, records, calendar = state.load, state.running, state.records, state.calendar
    worker, start_step, start_clock = state.worker, state.start_step, state.start_clock
    k, now = counters[STEP], state.clock[0]
    head = counters[POOL_HEAD]
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
            enter(i, w, k, prompt, output, load, running, records, calendar, counters)
            admitted += 1
    counters[POOL_HEAD] = keep
    counters[ACTIVE] += admitted
    counters[ADMITTED] += admitted


@kernel
def drain_queues(requests: Requests, setting: Setting, state: State) -> None:
    """Immediate admission: every worker takes from the head of its own queue while it has a free slot."""
    counters, queued, running = state.counters, state.queued, state.running
    if counters[QUEUED] == 0:
        return
    head, before = state.scratch_load, state.scratch_running
    head[:] = state.queue_head
    before[:] = queued
    for w in range(queued.size):
        while queued[w] > 0 and running[w] < setting.slots_per_worker:
            i = state.queue_head[w]
            state.queue_head[w] = state.next_in_queue[i]
            queued[w] -= 1
            state.queued_tokens[w] -= requests.prompt[i]
            counters[QUEUED] -= 1
            start(i, w, requests, state)
    if requests.unused.size > 0:  # apart, as in `bind_pool`
        for w in range(queued.size):
            i = head[w]
            for _ in range(before[w] - queued[w]):
                _use_experts(i, w, requests, state)
                i = state.next_in_queue[i]


@kernel
def bind_next(w: int, requests: Requests, setting: Setting, state: State) -> None:
    """Immediate admission: bind the head of the pool to worker w, where it starts at once if a slot is free.

    -1 holds it back, and everybody behind it, until the next step.
    """
    counters = state.counters
    if w < 0:
        counters[PHASE] = TAKE_STEP
        return
    i = state.pool[counters[POOL_HEAD]]
    counters[POOL_HEAD] += 1
    counters[DECISIONS] += 1
    counters[REAL_CHOICES] += loads_differ(state.load, state.queued_tokens)
    if state.running[w] < setting.slots_per_worker:
        start(i, w, requests, state)
        if requests.unused.size > 0:
            _use_experts(i, w, requests, state)
    else:
        state.worker[i] = w
        counters[QUEUED] += 1
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
def join_queue(
    i: int,
    w: int,
    prompt: Ints,
    queued: Ints,
    queued_tokens: Ints,
    queue_head: Ints,
    queue_tail: Ints,
    next_in_queue: Ints,
) -> None:
    """Put request i at the end of worker w's own queue."""
    next_in_queue[i] = -1
    if queued[w] == 0:
        queue_head[w] = i
    else:
        next_in_queue[queue_tail[w]] = i
    queue_tail[w] = i
    queued[w] += 1
    queued_tokens[w] += prompt[i]


@kernel
def bind_pool(requests: Requests, setting: Setting, state: State) -> None:
    """Immediate admission by a compiled rule: `bind_next` from the head of the pool, until it is empty or held."""
    counters, pool = state.counters, state.pool
    prompt, output, uniforms = requests.prompt, requests.output, requests.uniforms
    load, running, records, calendar = state.load, state.running, state.records, state.calendar
    queued, queued_tokens = state.queued, state.queued_tokens
    queue_head, queue_tail, next_in_queue = state.queue_head, state.queue_tail, state.next_in_queue
    worker, start_step, start_clock = state.worker, state.start_step, state.start_clock
    code, parameters, slots_per_worker = setting.code, setting.parameters, setting.slots_per_worker
    round_robin_at = counters[ROUND_ROBIN_AT : ROUND_ROBIN_AT + 1]
    preference, profile = requests.preference, requests.profile
    k, now = counters[STEP], state.clock[0]
    head, tail = counters[POOL_HEAD], counters[POOL_TAIL]
    bound = 0
    started = 0
    real_choices = 0
    for position in range(head, tail):
        i = pool[position]
        if code == BR_0_BYPASS:  # a function in between would cost more than the rules themselves
            w = bind_bypassing(parameters, slots_per_worker, prompt[i], load, running, queued, queued_tokens)
        elif code == IQR:
            w = bind_iqr(parameters, load, running, queued, queued_tokens)
        elif code == BAND:
            w = bind_in_band(BAND_UNIT * parameters[BAND_WIDTH], preference, profile[i], running, queued)
        else:
            w = bind(code, i, load, running, queued, queued_tokens, uniforms, round_robin_at)
        if w < 0:
            break
        bound += 1
        real_choices += loads_differ(load, queued_tokens)
        worker[i] = w
        if running[w] < slots_per_worker:
            start_step[i] = k
            start_clock[i] = now
            enter(i, w, k, prompt, output, load, running, records, calendar, counters)
            started += 1
        else:
            join_queue(i, w, prompt, queued, queued_tokens, queue_head, queue_tail, next_in_queue)
    if requests.unused.size > 0:  # apart from the loop above, which is slower for all rules with it inside
        for position in range(head, head + bound):
            if start_step[pool[position]] == k:
                _use_experts(pool[position], worker[pool[position]], requests, state)
    counters[POOL_HEAD] = head + bound
    counters[DECISIONS] += bound
    counters[REAL_CHOICES] += real_choices
    counters[QUEUED] += bound - started
    counters[ACTIVE] += started
    counters[ADMITTED] += started
