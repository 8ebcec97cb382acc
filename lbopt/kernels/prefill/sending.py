"""The way from the scheduler to the instances, which takes the latency.

What an instance does in between is not seen, but that a pass has ended is known at once: WAS_SENT of an instance goes
from 1 to 0 with the first such end after its last batch came. Events that are lost or late belong here.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.instances import join_queue, touch
from lbopt.kernels.prefill.tables import (
    BATCH,
    DISPATCHED,
    INSTANCE,
    LEFT,
    NEXT_REACH,
    ON_THE_WAY,
    OUTSTANDING,
    PLACED_IN_TURN,
    TOKENS,
    UNIT,
    WAS_SENT,
    WAY_HEAD,
    WAY_TAIL,
    State,
)


@kernel
def send(i: int, g: int, d: int, tokens: int, now: float, latency: float, state: State) -> None:
    """Send request i, `tokens` of which are to be computed, to unit d of instance g."""
    records, instances = state.records, state.instances
    records[i, INSTANCE] = g
    records[i, UNIT] = d
    records[i, LEFT] = tokens
    state.times[i, DISPATCHED] = now
    instances[g, OUTSTANDING] += 1
    instances[g, TOKENS] += tokens
    instances[g, PLACED_IN_TURN] += 1
    instances[g, WAS_SENT] = 1
    instances[g, BATCH] = 1
    counters = state.counters
    if latency > 0:
        if counters[WAY_HEAD] == counters[WAY_TAIL]:
            state.clock[NEXT_REACH] = now + latency
        state.on_the_way[counters[WAY_TAIL]] = i
        counters[WAY_TAIL] += 1
        instances[g, ON_THE_WAY] += 1
    else:
        join_queue(i, state.backlog.shape[1], records, state.queues, instances)
        touch(g, instances, state.touched, counters)


@kernel
def deliver(now: float, latency: float, state: State) -> None:
    """Let all requests that reach their instance now join the queues of their units."""
    counters, clock, records, instances = state.counters, state.clock, state.records, state.instances
    times, on_the_way, queues, touched = state.times, state.on_the_way, state.queues, state.touched
    while clock[NEXT_REACH] <= now:
        i = on_the_way[counters[WAY_HEAD]]
        counters[WAY_HEAD] += 1
        instances[records[i, INSTANCE], ON_THE_WAY] -= 1
        join_queue(i, state.backlog.shape[1], records, queues, instances)
        touch(records[i, INSTANCE], instances, touched, counters)
        if counters[WAY_HEAD] < counters[WAY_TAIL]:
            clock[NEXT_REACH] = times[on_the_way[counters[WAY_HEAD]], DISPATCHED] + latency
        else:
            clock[NEXT_REACH] = np.inf
