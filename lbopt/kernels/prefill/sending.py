"""The way from the scheduler to the instances, which takes the latency.

What an instance does in between is not seen, but that a pass has ended is known at once: `was_sent` of an instance goes
from 1 to 0 with the first such end after its last batch came. Events that are lost or late belong here.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.instances import join_queue, touch
from lbopt.kernels.prefill.state import State


@kernel
def send(i: int, g: int, d: int, tokens: int, now: float, latency: float, state: State) -> None:
    """Send a request to a unit.

    Parameters
    ----------
    i, g, d
        Request, instance, and unit within it.
    tokens
        Of the request, to be computed.
    now, latency
        Time, and time on the way, s.
    state
        Changed in place.
    """
    status, instance = state.status[i], state.instances[g]
    status.instance = g
    status.unit = d
    status.left = tokens
    status.dispatched = now
    instance.outstanding += 1
    instance.tokens += tokens
    instance.placed_in_turn += 1
    instance.was_sent = 1
    instance.batch = 1
    progress = state.progress
    if latency > 0:
        if progress.way_head == progress.way_tail:
            progress.next_reach = now + latency
        state.on_the_way[progress.way_tail] = i
        progress.way_tail += 1
        instance.on_the_way += 1
    else:
        join_queue(i, state.backlog.shape[1], state.status, state.queues, state.instances)
        touch(g, state.instances, state.touched, progress)


@kernel
def deliver(now: float, latency: float, state: State) -> None:
    """Let all requests that reach their instance now join the queues of their units."""
    progress, status, instances = state.progress, state.status, state.instances
    on_the_way, queues, touched = state.on_the_way, state.queues, state.touched
    while progress.next_reach <= now:
        i = on_the_way[progress.way_head]
        progress.way_head += 1
        instances[status[i].instance].on_the_way -= 1
        join_queue(i, state.backlog.shape[1], status, queues, instances)
        touch(status[i].instance, instances, touched, progress)
        if progress.way_head < progress.way_tail:
            progress.next_reach = status[on_the_way[progress.way_head]].dispatched + latency
        else:
            progress.next_reach = np.inf
