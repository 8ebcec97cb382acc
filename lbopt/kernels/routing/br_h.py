"""BR-H: BalanceRoute with lookahead (arXiv 2605.06113, algorithm 3); the two stages of BR-0 with the horizon score.

Stage 1, while more than `stage_switch` slots are free: the worker with most free slots takes the request of the whole
pool with the largest F. F is concave in the size and turns where its slope does, so a binary search in the pool sorted
by size finds it: the smallest size beyond which F falls, or the next smaller one.

Stage 2: the worker with the largest key (free slots, smallest margin over the window) takes the best non-empty subset
of a window of R_max requests; where even that has F <= 0, the best single one. Keys are formed anew at every pop.

Requests that have waited `age_bound` steps or more come first, oldest first, each to the worker of largest F. An
admitted request counts as a constant over the window, in the score and in the projection alike.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.horizon_score import falls_beyond, horizon_score, least_margin, margins_of
from lbopt.kernels.routing.horizon_subset import best_horizon_single, best_horizon_subset
from lbopt.kernels.routing.two_stage import (
    fill_window,
    first_at_most,
    rank_waiting,
    remove_placed,
    remove_rank,
    roomiest,
)


@kernel
def br_h(
    projected: Ints,
    free: Ints,
    sizes: Ints,
    waited: Ints,
    reward: int,
    penalties: Ints,
    parameters: Record,
    choice: Ints,
) -> None:
    """Run one scheduling round of BR-H.

    Parameters
    ----------
    projected
        int64 (G, H+1): projected loads, tokens; changed in place.
    free
        int64 (G,): free slots; changed in place.
    sizes, waited
        int64 (n,): prompt tokens and steps waited, in order of revelation.
    reward, penalties
        Weights of the score, penalties int64 (H+1,), see `horizon_score`.
    parameters
        `state.PARAMETERS`.
    choice
        int64 (n,), written: the worker of each waiting request, or -1.
    """
    width = penalties.size
    choice[:] = -1
    slots = free.sum()
    envelope = np.empty(width, np.int64)
    for h in range(width):
        envelope[h] = projected[:, h].max()
    margins = np.empty(width, np.int64)
    slots -= _place_overdue(projected, envelope, free, sizes, waited, reward, penalties, parameters, margins, choice)

    ranked = np.empty(sizes.size, np.int64)
    ranked_size = np.empty(sizes.size, np.int64)
    rest = rank_waiting(sizes, choice, ranked, ranked_size)
    now = projected[:, 0].copy()
    while slots > parameters.stage_switch and rest > 0:
        g = roomiest(now, free)
        margins_of(projected, envelope, g, margins)
        r = best_ranked(reward, penalties, margins, ranked_size, rest)
        choice[ranked[r]] = g
        admit_constant(projected, envelope, g, ranked_size[r])
        now[g] += ranked_size[r]
        free[g] -= 1
        slots -= 1
        rest = remove_rank(ranked, ranked_size, rest, r)

    window = np.empty(parameters.window_size, np.int64)
    window_rank = np.empty(parameters.window_size, np.int64)
    while slots > 0 and rest > 0:
        g = largest_key(parameters.key_product, projected, envelope, free)
        margins_of(projected, envelope, g, margins)
        length = min(parameters.window_size, rest)
        fill_window(parameters.window_by_arrival, ranked, rest, length, window_rank)
        for j in range(length):
            window[j] = ranked_size[window_rank[j]]
        most = min(free[g], length)
        mask = best_horizon_subset(parameters.subset, reward, penalties, margins, window, length, most)
        total = _total_of(mask, window, length)
        if horizon_score(reward, penalties, margins, total) <= 0:
            mask = 1 << best_horizon_single(reward, penalties, margins, window, length)
            total = _total_of(mask, window, length)
        for j in range(length):
            if mask >> j & 1:
                choice[ranked[window_rank[j]]] = g
                free[g] -= 1
                slots -= 1
        admit_constant(projected, envelope, g, total)
        rest = remove_placed(ranked, ranked_size, rest, choice)


@kernel
def best_ranked(reward: int, penalties: Ints, margins: Ints, ranked_size: Ints, rest: int) -> int:
    """Rank of the request with the largest F in the descending ranked_size[:rest]; ties: larger, then earlier.

    Parameters
    ----------
    reward, penalties
        Weights of the score, penalties int64 (H+1,), see `horizon_score`.
    margins
        int64 (H+1,), tokens, of the worker.
    ranked_size
        int64 (>= rest,), tokens, descending.
    rest
        How many of them are left, >= 1.
    """
    low, high = 0, rest  # F falls beyond the sizes of ranks below `low`, and not beyond those from `high` on
    while low < high:
        middle = (low + high) // 2
        if falls_beyond(reward, penalties, margins, ranked_size[middle]):
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 0
    beyond = ranked_size[low - 1]
    if low < rest:
        score = horizon_score(reward, penalties, margins, beyond)
        if score < horizon_score(reward, penalties, margins, ranked_size[low]):
            return low  # the earliest of its size: those before it are larger
    return first_at_most(ranked_size, rest, beyond)


@kernel
def admit_constant(projected: Ints, envelope: Ints, g: int, tokens: int) -> None:
    """Add `tokens` to worker g at every step of the window, and let the envelope follow.

    Parameters
    ----------
    projected, envelope
        int64 (G, H+1) and (H+1,), projected loads and the largest of each step, tokens; changed in place.
    g, tokens
        Worker, and what it gets.
    """
    for h in range(envelope.size):
        projected[g, h] += tokens
        envelope[h] = max(envelope[h], projected[g, h])


@kernel
def largest_key(product: int, projected: Ints, envelope: Ints, free: Ints) -> int:
    """Worker with a free slot and the largest stage-2 key; ties: lower number.

    Parameters
    ----------
    product
        1: slots * margin, 0: lexicographic.
    projected, envelope
        int64 (G, H+1) and (H+1,), projected loads and the largest of each step, tokens.
    free
        int64 (G,), free slots.
    """
    most = free.max()
    best = -1
    best_key = 0
    for g in range(free.size):
        if free[g] == 0 or (not product and free[g] < most):
            continue
        key = least_margin(projected, envelope, g)
        if product:
            key *= free[g]
        if best < 0 or key > best_key:
            best, best_key = g, key
    return best


@kernel
def _total_of(mask: int, window: Ints, length: int) -> int:
    total = 0
    for j in range(length):
        if mask >> j & 1:
            total += window[j]
    return total


@kernel
def _place_overdue(
    projected: Ints,
    envelope: Ints,
    free: Ints,
    sizes: Ints,
    waited: Ints,
    reward: int,
    penalties: Ints,
    parameters: Record,
    margins: Ints,
    choice: Ints,
) -> int:
    """Place requests that have waited `age_bound` steps, oldest first; returns how many.

    Parameters
    ----------
    projected, envelope
        int64 (G, H+1) and (H+1,), projected loads and the largest of each step, tokens; changed in place.
    free
        int64 (G,), free slots; changed in place.
    sizes, waited
        int64 (n,), tokens and steps waited, in order of revelation.
    reward, penalties
        Weights of the score, penalties int64 (H+1,), see `horizon_score`.
    parameters
        `state.PARAMETERS`.
    margins
        int64 (H+1,), scratch.
    choice
        int64 (n,), written for those that are placed.
    """
    placed = 0
    if parameters.age_bound < 0:
        return placed
    slots = free.sum()
    for position in range(sizes.size):
        if placed == slots or waited[position] < parameters.age_bound:
            break  # order of revelation is order of age: all later ones are younger
        best = -1
        best_f = 0
        for g in range(free.size):
            if free[g] == 0:
                continue
            margins_of(projected, envelope, g, margins)
            f = horizon_score(reward, penalties, margins, sizes[position])
            if best < 0 or f > best_f or (f == best_f and projected[g, 0] < projected[best, 0]):
                best, best_f = g, f
        choice[position] = best
        admit_constant(projected, envelope, best, sizes[position])
        free[best] -= 1
        placed += 1
    return placed
