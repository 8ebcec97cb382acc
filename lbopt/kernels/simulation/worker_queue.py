"""A worker's own queue, first in, first out: requests bound to it that do not run, chained by number.

`join_queue` takes bare arrays: taking them out of a group once per request costs more than the work itself.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.simulation.state import State


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
    """Put request i at the end of worker w's own queue.

    Parameters
    ----------
    i, w
        Request and worker.
    prompt
        int64 (N,), tokens.
    queued, queued_tokens
        int64 (G,), requests and tokens in each queue; changed in place.
    queue_head, queue_tail
        int64 (G,), first and last request of each queue; changed in place.
    next_in_queue
        int64 (N,), the request behind each; changed in place.
    """
    next_in_queue[i] = -1
    if queued[w] == 0:
        queue_head[w] = i
    else:
        next_in_queue[queue_tail[w]] = i
    queue_tail[w] = i
    queued[w] += 1
    queued_tokens[w] += prompt[i]


@kernel
def take_head(w: int, state: State) -> int:
    """Take the head from worker `w`'s queue, which is not empty."""
    i = state.queue_head[w]
    take_out(i, -1, w, state)
    return i


@kernel
def take_out(i: int, before: int, w: int, state: State) -> None:
    """Take request `i` out of worker `w`'s queue.

    Parameters
    ----------
    i, before
        The request, and the one in front of it; -1: it is the head.
    w
        Worker.
    state
        Changed in place.
    """
    following = state.next_in_queue[i]
    if before < 0:
        state.queue_head[w] = following
    else:
        state.next_in_queue[before] = following
        if state.queue_tail[w] == i:
            state.queue_tail[w] = before
    state.queued[w] -= 1
    state.queued_tokens[w] -= state.size[i]
    state.progress.queued -= 1
