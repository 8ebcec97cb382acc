"""Requests in: revelation, the pool, the workers' own queues, and the start of a request."""

from lbopt.kernels.compile import kernel
from lbopt.kernels.simulation.tables import (
    ACTIVE,
    ADMITTED,
    LAST_START,
    POOL_HEAD,
    POOL_TAIL,
    QUEUED,
    STEP,
    UNDISCOVERED,
)


@kernel
def start(i, w, requests, state):
    """Start request i on worker w now: it holds its prompt, and is entered where it will end."""
    counters = state.counters
    k = counters[STEP]
    state.worker[i] = w
    state.start_step[i] = k
    state.start_clock[i] = state.clock[0]
    state.load[w] += requests.prompt[i]
    state.running[w] += 1
    counters[ACTIVE] += 1
    counters[ADMITTED] += 1
    counters[LAST_START] = k
    bucket = (k + requests.output[i]) % state.calendar.size
    state.link[i] = state.calendar[bucket]
    state.calendar[bucket] = i


@kernel
def reveal(i, requests, state):
    """Note when request i became known: at its arrival, or now in a closed loop."""
    state.reveal_step[i] = state.counters[STEP]
    state.reveal_clock[i] = requests.arrival[i] if requests.arrival.size > 0 else state.clock[0]


@kernel
def known_until(requests, setting, state, waiting):
    """First request that stays undiscovered in the decision of this step."""
    first = state.counters[UNDISCOVERED]
    N = requests.prompt.size
    if setting.reveal_target >= 0:
        return min(N, first + max(0, setting.reveal_target - waiting))
    while first < N and requests.arrival[first] <= state.clock[0]:
        first += 1
    return first


@kernel
def reveal_to_pool(requests, setting, state):
    """Move newly known requests to the end of the pool."""
    counters = state.counters
    until = known_until(requests, setting, state, counters[POOL_TAIL] - counters[POOL_HEAD])
    for i in range(counters[UNDISCOVERED], until):
        reveal(i, requests, state)
        state.pool[counters[POOL_TAIL]] = i
        counters[POOL_TAIL] += 1
    counters[UNDISCOVERED] = until


@kernel
def admit(reach, requests, state):
    """Start the chosen requests among the first `reach` of the pool; the others keep their order.

    Survivors in front of the last admitted one move up, so the cost is `reach`, not the length of the pool.
    """
    counters = state.counters
    head = counters[POOL_HEAD]
    keep = head + reach
    for position in range(reach - 1, -1, -1):
        i = state.pool[head + position]
        w = state.choice[position]
        if w < 0:
            keep -= 1
            state.pool[keep] = i
        else:
            start(i, w, requests, state)
    counters[POOL_HEAD] = keep


@kernel
def drain_queues(requests, setting, state):
    """Immediate admission: every worker takes from the head of its own queue while it has a free slot."""
    if state.counters[QUEUED] == 0:
        return
    for w in range(state.load.size):
        while state.queued[w] > 0 and state.running[w] < setting.slots_per_worker:
            i = state.queue_head[w]
            state.queue_head[w] = state.link[i]
            state.queued[w] -= 1
            state.queued_tokens[w] -= requests.prompt[i]
            state.counters[QUEUED] -= 1
            start(i, w, requests, state)


@kernel
def bind_to(i, w, requests, setting, state):
    """Immediate admission: request i joins worker w, at once if a slot is free, else at the end of its queue."""
    if state.running[w] < setting.slots_per_worker:
        start(i, w, requests, state)
        return
    state.worker[i] = w
    state.link[i] = -1
    if state.queued[w] == 0:
        state.queue_head[w] = i
    else:
        state.link[state.queue_tail[w]] = i
    state.queue_tail[w] = i
    state.queued[w] += 1
    state.queued_tokens[w] += requests.prompt[i]
    state.counters[QUEUED] += 1
