"""BR-0: BalanceRoute without lookahead (arXiv 2605.06113, algorithm 2); what it leaves open is a parameter.

Stage 1, while more than `stage_switch` slots are free: the worker with most free slots (ties: lighter, then lower
number) takes the request of the whole pool with the largest F. F is concave in the size, so that request is the
largest that fits the margin or the smallest that does not: two binary searches in the pool sorted by size.

Stage 2: the worker with the largest key (free slots, margin) takes the best non-empty subset of a window of R_max
requests; where even that has F <= 0, the best single one (the source's guard against starvation). Keys are formed
anew at every pop, with the current envelope.

Before the stages, requests that have waited `age_bound` steps or more are placed oldest first, each on the lightest
worker with a free slot, at most U of them: for a single request that is a worker of largest
F, because F does not fall as the margin grows.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.codes import (
    LARGEST_WINDOW,
)
from lbopt.kernels.routing.f_score import f_score
from lbopt.kernels.routing.overdue import place_overdue
from lbopt.kernels.routing.subset import best_single, best_subset
from lbopt.kernels.routing.two_stage import (
    fill_window,
    first_at_most,
    rank_waiting,
    remove_placed,
    remove_rank,
    roomiest,
)


@kernel
def br_0(
    parameters: Record, load: Ints, free: Ints, pool: Ints, prompt: Ints, reveal_step: Ints, step: int, choice: Ints
) -> int:
    """Run one scheduling round; returns positions filled (the whole pool).

    `load` (G,) tokens and `free` (G,) are changed in place.

    Parameters
    ----------
    parameters
        `state.PARAMETERS`.
    load, free
        int64 (G,), tokens and free slots of each worker; changed in place.
    pool
        int64 (n,), request numbers in order of revelation.
    prompt
        int64 (N,), tokens, by request number.
    reveal_step
        int64 (N,), the step in which each request joined the pool.
    step
        Now.
    choice
        int64 (>= n,), written: the worker of each pool position, or -1.
    """
    G = load.size
    choice[: pool.size] = -1
    slots = 0
    for g in range(G):
        slots += free[g]
    slots -= place_overdue(parameters.age_bound, slots, load, free, pool, prompt, reveal_step, step, choice)

    size = np.empty(pool.size, np.int64)
    for position in range(pool.size):
        size[position] = prompt[pool[position]]
    ranked = np.empty(pool.size, np.int64)
    ranked_size = np.empty(pool.size, np.int64)
    rest = rank_waiting(size, choice, ranked, ranked_size)

    envelope = 0
    for g in range(G):
        envelope = max(envelope, load[g])

    while slots > parameters.stage_switch and rest > 0:
        g = roomiest(load, free)
        r = _best_ranked(G, ranked_size, rest, envelope - load[g])
        choice[ranked[r]] = g
        load[g] += ranked_size[r]
        free[g] -= 1
        slots -= 1
        envelope = max(envelope, load[g])
        rest = remove_rank(ranked, ranked_size, rest, r)

    window = np.empty(LARGEST_WINDOW, np.int64)
    window_rank = np.empty(LARGEST_WINDOW, np.int64)
    while slots > 0 and rest > 0:
        g = _largest_key(parameters.key_product, load, free, envelope)
        margin = envelope - load[g]
        length = min(parameters.window_size, rest)
        fill_window(parameters.window_by_arrival, ranked, rest, length, window_rank)
        for j in range(length):
            window[j] = ranked_size[window_rank[j]]
        mask = best_subset(G, window, length, min(free[g], length), margin)
        total = 0
        for j in range(length):
            if mask >> j & 1:
                total += window[j]
        if f_score(G, total, margin) <= 0:
            mask = 1 << best_single(G, window, length, margin)
        for j in range(length):
            if mask >> j & 1:
                choice[ranked[window_rank[j]]] = g
                load[g] += window[j]
                free[g] -= 1
                slots -= 1
        envelope = max(envelope, load[g])
        rest = remove_placed(ranked, ranked_size, rest, choice)
    return pool.size


@kernel
def _best_ranked(G: int, ranked_size: Ints, rest: int, margin: int) -> int:
    """Rank of the single request with the largest F; ties: larger, then earlier in the pool.

    Parameters
    ----------
    G
        Workers.
    ranked_size
        int64 (>= rest,), tokens, descending.
    rest
        How many of them are left.
    margin
        Tokens, of the worker.
    """
    if G == 1:
        return 0  # F is flat beyond the margin: all tie with the largest
    below = first_at_most(ranked_size, rest, margin)
    if below == 0:
        return below
    smallest_above = ranked_size[below - 1]
    above = first_at_most(ranked_size, rest, smallest_above)  # the earliest of its size
    if below == rest or f_score(G, smallest_above, margin) >= ranked_size[below]:
        return above
    return below


@kernel
def _largest_key(product: int, load: Ints, free: Ints, envelope: int) -> int:
    """Worker with a free slot and the largest stage-2 key; ties: lower number.

    Parameters
    ----------
    product
        1: slots * margin, 0: lexicographic.
    load, free
        int64 (G,), tokens and free slots.
    envelope
        Largest load, tokens.
    """
    best = -1
    for g in range(load.size):
        if free[g] == 0:
            continue
        if best < 0:
            best = g
        elif product:
            if free[g] * (envelope - load[g]) > free[best] * (envelope - load[best]):
                best = g
        elif free[g] > free[best] or (free[g] == free[best] and load[g] < load[best]):
            best = g  # equal slots: larger margin = smaller load
    return best
