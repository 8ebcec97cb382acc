"""Diving: solve the master, keep the patterns that it takes whole, solve again for the workers that are left.

The master's optimum is a mixture of patterns, but most workers have one pattern at level one. Those are kept; the
rest is a smaller problem of the same kind over the requests that are left, whose master starts from the prices of the
last one. Where nothing is whole, the pattern of the highest level is kept. After each round a short descent tries to
settle what is left at once.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.column_generation import generate_columns
from lbopt.kernels.search.descent import descend, start_descent
from lbopt.kernels.search.master import reset_master
from lbopt.kernels.search.near_optimal import list_all
from lbopt.kernels.search.pattern import smallest_sums
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, NONE, Master, Search, Step, part

#: Levels from which a pattern counts as taken whole, and below which an artificial one counts as not taken.
WHOLE, NOTHING = 0.999, 1e-6


@kernel
def dive(
    step: Step, search: Search, m: Master, M: int, target: int, least: int, nodes: int, most: int, answer: Ints
) -> tuple[int, int]:
    """Complete the master's present optimum to an assignment at envelope M; writes answer[w, :slots[w]].

    Starts from search.price and the basis of `m`, a copy of the master of all workers. The short descents look for
    `target` tokens and have `nodes` nodes and lists of at most `most` patterns. Less than `least` tokens are not worth
    the dive.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    m
        Master program; changes in place.
    M
        Envelope, tokens.
    target, least
        Tokens that the short descents look for; tokens below which the dive ends.
    nodes, most
        Nodes of a short descent; patterns listed for a worker.
    answer
        int64 (W, Q) at least, written: classes of each worker.

    Returns
    -------
    tokens, pivots
        Tokens admitted, -1 where the dive ended at a worker that cannot be served, or below `least`; pivots made.
    """
    v, load, slots, rank, scale = step.v, step.load, step.slots, step.rank, step.scale
    price, best_price, spare = search.price, search.best_price, search.spare
    W, K = load.size, v.size
    left = step.n.copy()
    who = np.arange(W)  # the workers that are left, in the order of load and slots
    place = np.arange(W)  # position of a worker among those that are left, -1 = settled
    sub_load, sub_slots, sub_rank, sums = load.copy(), slots.copy(), rank.copy(), step.sums.copy()
    size = W
    done = 0  # tokens of the workers that are settled
    pivots = 0
    while True:
        # Settle what the master takes whole, or else its strongest pattern.
        strongest, top = -1, 0.0
        for b in range(m.counts.tight):
            j = m.basic[b]
            if m.value[j] < 0.0:
                if m.level[b] > NOTHING:
                    return -1, pivots  # somebody cannot be served
            elif m.level[b] > top + 1e-9:
                strongest, top = j, m.level[b]
        if strongest < 0:
            return -1, pivots
        for r in range(size):
            place[r] = r
        for b in range(m.counts.tight):
            j = m.basic[b]
            if m.value[j] >= 0.0 and (j == strongest or m.level[b] > WHOLE):
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
        sub = part(step, left, sub_load[:size], sub_slots[:size], sub_rank[:size], sums)
        reset_master(m, left, size, 2.0 * M + 1.0)
        tokens, converged, found = generate_columns(sub, search, m, M, least - done - 1, 300)
        pivots += m.counts.pivots
        if tokens == NONE or done + tokens // scale < least:
            return -1, pivots
        if done + found < target and done + tokens // scale >= target:
            # What is left could still reach the target: look for it.
            for k in range(K):
                price[k] = best_price[k]
            tokens = evaluate(sub, search, M, EXACT)
            budget = tokens - scale * (target - done)
            list_all(sub, search, M, budget, most)
            start_descent(sub, search, budget)
            _, found, _ = descend(sub, search, M, target - done, nodes)
        if found >= 0 and done + found >= target:
            for r in range(size):
                for q in range(sub_slots[r]):
                    answer[who[r], q] = spare[r, q]
            return done + found, pivots
        if not converged:
            return -1, pivots
        for k in range(K):
            price[k] = best_price[k]
