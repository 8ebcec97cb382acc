"""tensorrt-llm: the oldest requests that have room, longest prompt first, each to the worker of fewest prompt tokens.

The default of TensorRT-LLM's attention data parallelism: a worker's tokens are those of the prompts of its running
requests, without what they have generated; ties go to fewer requests, then to the lower number. A worker takes no more
once it has as many requests as an even share of all of them, or as the fullest worker had, whichever is more.

Source: `DefaultADPRouter` in tensorrt_llm/_torch/pyexecutor/scheduler/adp_router.py at 02385f29. Requests that wish for
a rank of their own have no counterpart here.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def share_out(free: Ints, running: Ints, prompts: Ints, pool: Ints, prompt: Ints, choice: Ints) -> int:
    """Place as many of the oldest requests as there are free slots; returns positions filled.

    Parameters
    ----------
    free, running, prompts
        int64 (G,), free slots, running requests, and the prompt tokens of these; `free` and `running` are changed in
        place.
    pool
        int64 (n,), request numbers in order of revelation.
    prompt
        int64 (N,), tokens, by request number.
    choice
        int64 (>= n,), written: the worker of each pool position, or -1.
    """
    G = free.size
    slots, active, most = 0, 0, 0
    for g in range(G):
        slots += free[g]
        active += running[g]
        most = max(most, running[g])
    U = min(slots, pool.size)
    share = max((active + U + G - 1) // G, most)
    held = prompts.copy()
    size = np.empty(U, np.int64)
    for position in range(U):
        size[position] = prompt[pool[position]]
        choice[position] = -1
    order = np.argsort(-size, kind="mergesort")  # stable: the earlier of two equal requests goes first
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
