"""Diving: solve the master, keep the patterns that it takes whole, solve again for the workers that are left.

The master's optimum is a mixture of patterns, but most workers have one pattern at level one. Those are kept; the rest is
a smaller problem of the same kind over the requests that are left, whose master starts from the prices of the last one.
Where nothing is whole, the pattern of the highest level is kept. Before each round a short descent tries to settle what is
left at once.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.column_generation import generate_columns
from lbopt.kernels.search.descent import descend
from lbopt.kernels.search.master import Master, reset_master
from lbopt.kernels.search.near_optimal import list_all
from lbopt.kernels.search.pattern import smallest_sums
from lbopt.kernels.search.prices import EXACT, evaluate


@kernel
def dive(
    m: Master,
    M: int,
    scale: int,
    target: int,
    nodes: int,
    most: int,
    v: Ints,
    n: Ints,
    load: Ints,
    slots: Ints,
    rank: Ints,
    price: Ints,
    best_price: Ints,
    short: Ints,
    table: Ints,
    value: Ints,
    bound: Ints,
    pattern: Ints,
    work: Ints,
    classes: Ints,
    first: Ints,
    last: Ints,
    items: Ints,
    loss: Ints,
    viable: Ints,
    undecided: Ints,
    answer: Ints,
) -> tuple[int, int]:
    """Complete the master's present optimum to an assignment at envelope M.

    Starts from the basis of `m` for all workers. Writes answer[w, :slots[w]].

    Returns
    -------
    tokens, pivots
        Tokens admitted (-1 where the dive ended at a worker that cannot be served), pivots made.
    """
    W, K = load.size, v.size
    who = np.zeros(W, dtype=np.int64)  # the workers that are left, in the order of load and slots
    left = np.zeros(K, dtype=np.int64)  # and the requests
    sums = np.zeros(slots[W - 1] + 1, dtype=np.int64)
    sub_load, sub_slots, sub_rank = np.zeros(W, np.int64), np.zeros(W, np.int64), np.zeros(W, np.int64)
    place = np.zeros(W, dtype=np.int64)  # position among those that are left, -1 = settled
    sub = np.zeros(pattern.shape, dtype=np.int64)
    for w in range(W):
        who[w] = w
    for k in range(K):
        left[k] = n[k]
    size = W
    done = 0  # tokens of the workers that are settled
    pivots = 0
    while True:
        # Settle what the master takes whole, or else its strongest pattern.
        strongest, top = -1, 0.0
        for b in range(m.count[1]):
            j = m.basic[b]
            if m.items[j, 0] < 0:
                if m.level[b] > 1e-6:
                    return -1, pivots  # an artificial column: somebody cannot be served
            elif m.level[b] > top + 1e-9:
                strongest, top = j, m.level[b]
        if strongest < 0:
            return -1, pivots
        for r in range(size):
            place[r] = r
        for b in range(m.count[1]):
            j = m.basic[b]
            if m.items[j, 0] >= 0 and (j == strongest or m.level[b] > 0.999):
                r = m.owner[j]
                place[r] = -1
                for q in range(slots[who[r]]):
                    k = m.items[j, q]
                    answer[who[r], q] = k
                    left[k] -= 1
                    done += v[k]
        rest = 0
        for r in range(size):
            if place[r] >= 0:
                who[rest] = who[r]
                rest += 1
        size = rest
        if size == 0:
            return done, pivots
        for w in range(W):
            place[w] = -1
        for r in range(size):
            place[who[r]] = r
            sub_load[r], sub_slots[r] = load[who[r]], slots[who[r]]
        at = 0
        for r in range(W):
            if place[rank[r]] >= 0:
                sub_rank[at] = place[rank[r]]
                at += 1
        smallest_sums(v, left, sums)
        reset_master(m, left, size, 2.0 * M)
        tokens, _, ending, found = generate_columns(
            m, M, scale, -(1 << 60), 300, v, left, price, sub_load[:size], sub_slots[:size], sub_rank[:size], sums,
            short, table, value, bound, sub, best_price, undecided, items, pattern,
        )
        pivots += m.count[2]
        if tokens == -(1 << 62):
            return -1, pivots
        reached = done + found if found >= 0 else -1
        if reached < target and done + tokens // scale >= target:
            # What is left could still reach the target: look for it.
            budget = tokens - scale * (target - done)
            evaluate(
                M, scale, EXACT, v, left, best_price, sub_load[:size], sub_slots[:size], sums, short, table, value, bound, sub
            )
            list_all(
                M, scale, budget, most, v, left, best_price, sub_load[:size], sub_slots[:size], bound,
                short[0], short[1], first, last, items, loss,
            )
            _, found, _ = descend(
                M, scale, budget, target - done, nodes, v, left, best_price, sub_load[:size], sub_slots[:size],
                sub_rank[:size], first, last, items, loss, viable, work, classes, sub, pattern,
            )
            reached = done + found if found >= 0 else -1
        if reached >= target:
            for r in range(size):
                for q in range(sub_slots[r]):
                    answer[who[r], q] = pattern[r, q]
            return reached, pivots
        if ending != 0:
            return -1, pivots
        for k in range(K):
            price[k] = best_price[k]
