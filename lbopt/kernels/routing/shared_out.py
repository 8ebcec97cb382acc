"""tensorrt-llm: the oldest requests that have room, longest prompt first, each to the worker of fewest prompt tokens.

The default of TensorRT-LLM's attention data parallelism: a worker's tokens are those of the prompts of its running
requests, without what they have generated; ties go to fewer requests, then to the lower number. A worker takes no more
once it has as many requests as an even share of all of them, or as the fullest worker had, whichever is more.

Source: `DefaultADPRouter` in tensorrt_llm/_torch/pyexecutor/scheduler/adp_router.py at 02385f29. Requests that wish for
a rank of their own have no counterpart here.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.state import Room, Waiting
from lbopt.kernels.stable_order import stable_order


@kernel
def share_out(parameters: Record, room: Room, waiting: Waiting, choice: Ints) -> int:
    """Place as many of the oldest requests as there are free slots; returns positions filled."""
    _, free, running, prompts = room
    pool = waiting.pool
    G = free.size
    U = min(free.sum(), pool.size)
    share = max((running.sum() + U + G - 1) // G, running.max())
    held = prompts.copy()
    size = np.empty(U, np.int64)
    for position in range(U):
        size[position] = waiting.prompt[pool[position]]
        choice[position] = -1
    order = stable_order(-size)  # stable: the earlier of two equal requests goes first
    for position in order:
        w = -1
        for g in range(G):
            if free[g] > 0 and running[g] < share:
                fewer = w < 0 or held[g] < held[w]
                if fewer or (held[g] == held[w] and running[g] < running[w]):
                    w = g
        if w < 0:
            break
        choice[position] = w
        held[w] += size[position]
        running[w] += 1
        free[w] -= 1
    return U
