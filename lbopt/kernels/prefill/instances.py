"""What happens on the way to the instances and on them: a request is sent and reaches its unit, a pass starts and ends.

The way from the scheduler takes the latency. What an instance does in between is not seen, but that a pass has ended is
known at once: `was_sent` of an instance goes from 1 to 0 with the first such end after its last batch came.

A pass locks the instance: each unit takes from its queue, the oldest first, up to `chunk` tokens and `capacity`
requests, and what comes later waits for a later pass. What exceeds the chunk stays at the head of the queue, so that it
goes on first in the next pass. All units wait for the fullest:

    seconds = base + per_token * (tokens of the fullest unit) + per_longest * (longest chunk of a request)
              + per_mean * (tokens of the instance / units).
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.anticipation import predict_end
from lbopt.kernels.prefill.codes import ANTICIPATING, BACK_TO_BACK
from lbopt.kernels.prefill.state import Passes, Setting, State


@kernel
def touch(g: int, instances: Records, touched: Ints, progress: Record) -> None:
    """Note that instance g may start a pass at the end of this moment."""
    if instances[g].is_touched == 0:
        instances[g].is_touched = 1
        touched[progress.touched] = g
        progress.touched += 1


@kernel
def join_queue(i: int, D: int, status: Records, queues: Records, instances: Records) -> None:
    """Let request i join the queue of its unit, of D of the instance."""
    g = status[i].instance
    u = g * D + status[i].unit
    if queues[u].first < 0:
        queues[u].first = i
    else:
        status[queues[u].last].following = i
    queues[u].last = i
    instances[g].on_device += 1


@kernel
def start_pass(g: int, now: float, setting: Setting, state: State, passes: Passes) -> None:
    """Start a pass on instance g if it is free and has requests, or its engine does not ask for that."""
    ends, instance = state.ends, state.instances[g]
    if ends[g] < np.inf or (instance.on_device == 0 and setting.engine != BACK_TO_BACK):
        return
    progress, statuses, queues, of_unit = state.progress, state.status, state.queues, passes.of_unit
    chunk, capacity = setting.chunk, setting.capacity
    D = queues.size // ends.size
    row = progress.row
    number = progress.passes + row
    total = fullest = longest = served = completes = began = 0
    for d in range(D):
        queue = queues[g * D + d]
        i = queue.first
        taken = count = 0
        while i >= 0 and taken < chunk and count < capacity:
            status = statuses[i]
            part = min(status.left, chunk - taken)
            if status.served_by == 0:
                status.began = now
                began += 1
            status.served_by += 1
            status.left -= part
            taken += part
            count += 1
            longest = max(longest, part)
            if status.left > 0:
                break
            status.last_pass = number
            completes += 1
            i = status.following
        queue.first = i
        queue.in_pass = taken
        if of_unit.size > 0:
            of_unit[row, d] = taken
        total += taken
        fullest = max(fullest, taken)
        served += count
    law = setting.base + setting.per_token * fullest + setting.per_longest * longest
    end = now + (law + setting.per_mean * (total / D))
    instance.on_device -= completes
    instance.completes = completes
    instance.computes = total
    instance.fullest = fullest
    instance.running = number
    instance.closed = 0
    if instance.batch == 1 and instance.on_the_way == 0:
        instance.batch = 2
    instance.started = now
    if setting.policy == ANTICIPATING:
        predict_end(g, now, setting, state)
    instance.begun += 1
    ends[g] = end
    progress.next_end = min(progress.next_end, end)
    progress.idle -= 1
    progress.not_begun -= began
    begun = passes.rows[row]
    begun.instance = g
    begun.tokens = total
    begun.fullest = fullest
    begun.longest = longest
    begun.requests = served
    begun.start = now
    begun.end = end
    progress.row = row + 1


@kernel
def end_pass(g: int, now: float, state: State) -> float:
    """End the pass of instance g; returns how long it took, negative if there was none (busy at first)."""
    instance, progress = state.instances[g], state.progress
    seconds = -1.0
    if instance.running >= 0:
        backlog, queues = state.backlog, state.queues
        seconds = now - instance.started
        D = backlog.shape[1]
        for d in range(D):
            backlog[g, d] -= queues[g * D + d].in_pass
            queues[g * D + d].in_pass = 0
        instance.tokens -= instance.computes
        instance.outstanding -= instance.completes
        progress.unfinished -= instance.completes
    instance.running = -1
    if instance.on_the_way == 0:
        instance.was_sent = 0
    if instance.batch == 2:
        instance.batch = 0
    state.ends[g] = np.inf
    instance.free_since = now
    progress.idle += 1
    touch(g, state.instances, state.touched, progress)
    return seconds


@kernel
def send(i: int, g: int, d: int, tokens: int, now: float, latency: float, state: State) -> None:
    """Send request i, with so many tokens to be computed, to unit d of instance g."""
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
