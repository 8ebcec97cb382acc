"""BR-0 and BR-H: the rounds of BalanceRoute in two stages.

Which worker has most room, and the waiting requests ranked by size: what the two stages of BalanceRoute go by.

BalanceRoute, with lookahead and without (arXiv 2605.06113, algorithms 3 and 2); what it leaves open is a parameter.

A batch is worth the F of `horizon_score` on a worker. BR-0 is the case H = 0 with R_0 = 1 and P_0 = G. A request counts
by its profile over the window, or as constant: its prompt in every step.

Stage 1, while more than `stage_switch` slots are free: the worker with most free slots (ties: lighter, then lower
number) takes the request of the whole pool with the largest F. Of constant requests F is concave in the size, so that
a binary search in the pool sorted by size finds it; by profiles every request is scored.

Stage 2: the worker with the largest key (free slots, smallest margin over the window) takes the best non-empty subset
of a window of R_max requests; where even that has F <= 0, the best single one (the source's guard against starvation).
Keys are formed anew at every pop, with the current envelope.

Requests that have waited `age_bound` steps or more come first, oldest first, each to the worker of largest F.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.horizon import (
    TERM,
    best_batch,
    envelope_of,
    falls_beyond,
    least_margin,
    look_at,
    score,
)
from lbopt.kernels.routing.state import Room, Waiting
from lbopt.kernels.stable_order import stable_order


@kernel
def roomiest(load: Ints, free: Ints) -> int:
    """Worker with most free slots; ties: lighter, then lower number."""
    best = 0
    for g in range(1, load.size):
        if free[g] > free[best] or (free[g] == free[best] and load[g] < load[best]):
            best = g
    return best


@kernel
def rank_waiting(sizes: Ints, choice: Ints, ranked: Ints, ranked_size: Ints) -> int:
    """Rank the positions without a worker by size, largest first, ties in order of revelation; returns how many.

    Parameters
    ----------
    sizes, choice
        int64 (n,), tokens, and the worker of each position or -1.
    ranked, ranked_size
        int64 (>= n,), written: position and tokens of each rank.
    """
    rest = 0
    for position in range(sizes.size):
        if choice[position] < 0:
            ranked[rest] = position
            rest += 1
    size = np.empty(rest, np.int64)
    for r in range(rest):
        size[r] = -sizes[ranked[r]]
    order = stable_order(size)
    waiting = ranked[:rest].copy()
    for r in range(rest):
        ranked[r] = waiting[order[r]]
        ranked_size[r] = -size[order[r]]
    return rest


@kernel
def first_at_most(ranked_size: Ints, rest: int, bound: int) -> int:
    """First rank whose size is at most `bound`, in the descending array ranked_size[:rest]."""
    low, high = 0, rest
    while low < high:
        middle = (low + high) // 2
        if ranked_size[middle] <= bound:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def fill_window(by_arrival: int, ranked: Ints, rest: int, length: int, window_rank: Ints) -> None:
    """Write the ranks of the first `length` waiting requests in window order.

    Parameters
    ----------
    by_arrival
        0: largest first, 1: in order of revelation.
    ranked
        int64 (>= rest,), position in the pool of each rank.
    rest, length
        How many ranks wait, and how many of them the window takes.
    window_rank
        int64 (>= length,), written.
    """
    if not by_arrival:
        for j in range(length):
            window_rank[j] = j
        return
    count = 0
    for r in range(rest):  # keep the `length` smallest pool positions, ascending
        j = min(count, length - 1)
        if count == length and ranked[window_rank[j]] < ranked[r]:
            continue
        while j > 0 and ranked[window_rank[j - 1]] > ranked[r]:
            window_rank[j] = window_rank[j - 1]
            j -= 1
        window_rank[j] = r
        count = min(count + 1, length)


@kernel
def remove_rank(ranked: Ints, ranked_size: Ints, rest: int, r: int) -> int:
    """Remove rank `r`; returns how many remain.

    Parameters
    ----------
    ranked, ranked_size
        int64 (>= rest,), position in the pool and tokens of each rank, the largest first; changed in place.
    rest, r
        How many ranks there are, and the one to remove.
    """
    for q in range(r, rest - 1):
        ranked[q] = ranked[q + 1]
        ranked_size[q] = ranked_size[q + 1]
    return rest - 1


@kernel
def remove_placed(ranked: Ints, ranked_size: Ints, rest: int, choice: Ints) -> int:
    """Remove the ranks that have a worker by now; returns how many remain.

    Parameters
    ----------
    ranked, ranked_size
        int64 (>= rest,), position in the pool and tokens of each rank, the largest first; changed in place.
    choice
        int64 (n,), the worker of each position, or -1.
    """
    kept = 0
    for r in range(rest):
        if choice[ranked[r]] < 0:
            ranked[kept] = ranked[r]
            ranked_size[kept] = ranked_size[r]
            kept += 1
    return kept


@kernel
def balance_route(
    parameters: Record,
    terms: Records,
    projected: Ints,
    free: Ints,
    waited: Ints,
    sizes: Ints,
    profiles: Ints,
    choice: Ints,
) -> None:
    """Run one scheduling round.

    Parameters
    ----------
    parameters
        `state.PARAMETERS`.
    terms
        (H+1,) of TERM, see `horizon_score`; the margins are written.
    projected, free
        int64 (G, H+1) and (G,), tokens and free slots of the workers; changed in place.
    waited, sizes
        int64 (n,), steps that each request has waited, and its prompt tokens, in order of revelation.
    profiles
        int64 (n, H+1), its tokens over the window; or (n, 1), `sizes`, the same in every step.
    choice
        int64 (>= n,), written: the worker of each waiting request, or -1.
    """
    n, slots, placed = sizes.size, free.sum(), 0
    envelope = np.empty(terms.size, np.int64)
    envelope_of(projected, envelope)
    choice[:n] = -1
    while placed < min(n, slots) and 0 <= parameters.age_bound <= waited[placed]:  # all later ones are younger
        g = _best_worker(terms, projected, envelope, free, profiles, placed)
        _place(projected, envelope, free, profiles, placed, g)
        choice[placed] = g
        placed += 1
    slots -= placed

    ranked, ranked_size = np.empty(n, np.int64), np.empty(n, np.int64)
    rest = rank_waiting(sizes, choice, ranked, ranked_size)
    now = projected[:, 0].copy()  # one after the other in memory, since stage 1 goes through all workers
    while slots > parameters.stage_switch and rest > 0:
        g = roomiest(now, free)
        look_at(projected, envelope, g, terms)
        r = best_ranked(terms, profiles, ranked, ranked_size, rest)
        _place(projected, envelope, free, profiles, ranked[r], g)
        choice[ranked[r]] = g
        now[g] = projected[g, 0]
        slots -= 1
        rest = remove_rank(ranked, ranked_size, rest, r)

    ranks, window = np.empty(parameters.window_size, np.int64), np.empty(parameters.window_size, np.int64)
    tokens, added = np.empty(parameters.window_size, np.int64), np.empty((1, profiles.shape[1]), np.int64)
    while slots > 0 and rest > 0:
        g = _largest_key(parameters.key_product, projected, envelope, free)
        look_at(projected, envelope, g, terms)
        length = min(parameters.window_size, rest)
        fill_window(parameters.window_by_arrival, ranked, rest, length, ranks)
        for j in range(length):
            window[j], tokens[j] = ranked[ranks[j]], ranked_size[ranks[j]]
        mask = best_batch(parameters.subset, min(free[g], length), terms, tokens, profiles, window, length, added)
        for j in range(length):
            if mask >> j & 1:
                _place(projected, envelope, free, profiles, window[j], g)
                choice[window[j]] = g
                slots -= 1
        rest = remove_placed(ranked, ranked_size, rest, choice)


@kernel
def br_0(parameters: Record, room: Room, waiting: Waiting, choice: Ints) -> int:
    """Run one scheduling round without lookahead; returns positions filled (the whole pool)."""
    load, free, pool = room.load, room.free, waiting.pool
    n = pool.size
    sizes, waited, terms = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(1, TERM)
    for position in range(n):
        sizes[position] = waiting.prompt[pool[position]]
        waited[position] = waiting.step - waiting.reveal_step[pool[position]]
    terms[0].reward, terms[0].penalty = 1, load.size
    balance_route(parameters, terms, load.reshape(load.size, 1), free, waited, sizes, sizes.reshape(n, 1), choice)
    return n


@kernel
def _place(projected: Ints, envelope: Ints, free: Ints, profiles: Ints, position: int, g: int) -> None:
    """Give a request to worker g, and let the envelope follow."""
    grows = profiles.shape[1] > 1
    for h in range(envelope.size):
        projected[g, h] += profiles[position, h * grows]
        envelope[h] = max(envelope[h], projected[g, h])
    free[g] -= 1


@kernel
def _best_worker(terms: Records, projected: Ints, envelope: Ints, free: Ints, profiles: Ints, position: int) -> int:
    """Worker with a free slot and the largest F for one request; ties: lighter now, then lower number."""
    best, best_f = -1, 0
    for g in range(free.size):
        if free[g] > 0:
            look_at(projected, envelope, g, terms)
            f = score(terms, profiles, position)
            if best < 0 or f > best_f or (f == best_f and projected[g, 0] < projected[best, 0]):
                best, best_f = g, f
    return best


@kernel
def best_ranked(terms: Records, profiles: Ints, ranked: Ints, ranked_size: Ints, rest: int) -> int:
    """Rank of the request with the largest F; ties: larger, then earlier.

    Parameters
    ----------
    terms, profiles
        See `horizon_score`.
    ranked, ranked_size
        int64 (>= rest,), position in the pool and tokens of each rank, the largest first.
    rest
        How many are left, at least one.
    """
    if profiles.shape[1] > 1:
        best, best_f = 0, score(terms, profiles, ranked[0])
        for r in range(1, rest):
            f = score(terms, profiles, ranked[r])
            if f > best_f:
                best, best_f = r, f
        return best
    low, high = 0, rest  # F falls beyond the sizes of ranks below `low`, not beyond those from `high` on
    while low < high:
        middle = (low + high) // 2
        if falls_beyond(terms, ranked_size[middle]):
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 0
    if low < rest and score(terms, profiles, ranked[low - 1]) < score(terms, profiles, ranked[low]):
        return low  # the earliest of its size: those before it are larger
    return first_at_most(ranked_size, rest, ranked_size[low - 1])


@kernel
def _largest_key(product: int, projected: Ints, envelope: Ints, free: Ints) -> int:
    """Worker with a free slot and the largest stage-2 key; ties: lower number.

    `product` is 1 for slots * margin, 0 for lexicographic.
    """
    most = 0
    for g in range(free.size):
        most = max(most, free[g])
    best, best_key = -1, 0
    for g in range(free.size):
        if free[g] == 0 or (not product and free[g] < most):
            continue
        key = least_margin(projected, envelope, g)
        if product:
            key *= free[g]
        if best < 0 or key > best_key:
            best, best_key = g, key
    return best
