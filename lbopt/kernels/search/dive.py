"""Diving: solve the master, keep the patterns that it takes whole, solve again for the workers that are left.

The master's optimum is a mixture of patterns, but most workers have one pattern at level one. Those are kept; the
rest is a smaller problem of the same kind over the requests that are left, whose master starts from the prices of the
last one. Where nothing is whole, the pattern of the highest level is kept. A dive can be taken up again: everything it
needs is in arrays.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.column_generation import begin_columns, generate_columns
from lbopt.kernels.search.master import reset_master
from lbopt.kernels.search.pattern import smallest_sums
from lbopt.kernels.search.state import NONE, Master, Search, Step, part

#: Levels from which a pattern counts as taken whole, and below which an artificial one counts as not taken.
WHOLE, NOTHING = 0.999, 1e-6


#: What a dive answers that has to be called again.
UNFINISHED = -2


@kernel
def begin_dive(step: Step, search: Search) -> None:
    """Let a dive begin with all workers and all requests."""
    pricing = search.pricing
    W, K = step.load.size, step.v.size
    for k in range(K):
        pricing.left[k] = step.n[k]
    for w in range(W):
        pricing.who[w] = w
        pricing.load[w], pricing.slots[w], pricing.rank[w] = step.load[w], step.slots[w], step.rank[w]
    for c in range(step.sums.size):
        pricing.sums[c] = step.sums[c]
    state = pricing.diving
    state.workers, state.tokens, state.pivots, state.pricing = W, 0, 0, 0


@kernel
def _settle(step: Step, search: Search, m: Master, answer: Ints) -> bool:
    """Give the workers that the master takes whole their patterns, or else the strongest one; False where that fails.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, whose dive changes in place.
    m
        Master program of the workers that are left, at its optimum.
    answer
        int64 (W, Q) at least, written: classes of each worker.
    """
    pricing, state = search.pricing, search.pricing.diving
    left, who, place = pricing.left[: step.v.size], pricing.who, pricing.place
    W = step.load.size
    strongest, top = -1, 0.0
    for b in range(m.counts.tight):
        j = m.basic[b]
        if m.value[j] < 0.0:
            if m.level[b] > NOTHING:
                return False  # somebody cannot be served
        elif m.level[b] > top + 1e-9:
            strongest, top = j, m.level[b]
    if strongest < 0:
        return False
    for r in range(state.workers):
        place[r] = r
    for b in range(m.counts.tight):
        j = m.basic[b]
        if m.value[j] >= 0.0 and (j == strongest or m.level[b] > WHOLE):
            r = m.owner[j]
            place[r] = -1
            for q in range(step.slots[who[r]]):
                k = m.items[j, q]
                answer[who[r], q] = k
                left[k] -= 1
                state.tokens += step.v[k]
    rest = 0
    for r in range(state.workers):
        if place[r] >= 0:
            who[rest] = who[r]
            rest += 1
    state.workers = rest
    for w in range(W):
        place[w] = -1
    for r in range(rest):
        place[who[r]] = r
        pricing.load[r], pricing.slots[r] = step.load[who[r]], step.slots[who[r]]
    at = 0
    for r in range(W):
        if place[step.rank[r]] >= 0:
            pricing.rank[at] = place[step.rank[r]]
            at += 1
    smallest_sums(step.v, left, pricing.sums[: step.sums.size])
    return True


@kernel
def dive(
    step: Step,
    search: Search,
    m: Master,
    M: int,
    target: int,
    least: int,
    answer: Ints,
    stop: int,
) -> int:
    """Complete the master's present optimum to an assignment at envelope M; writes answer[w, :slots[w]].

    Starts from search.price and the basis of `m`, a copy of the master of all workers, after `begin_dive`. It ends at
    `target` tokens; less than `least` are not worth the dive. Returns the tokens admitted, -1 where the dive ended at a
    worker that cannot be served, below `least` or beyond the deadline, UNFINISHED where the work reached `stop` before:
    the next call goes on.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    m
        Master program; changes in place.
    M
        Envelope, tokens.
    target, least
        Tokens at which, and below which, the dive ends.
    answer
        int64 (W, Q) at least, written: classes of each worker.
    stop
        Work of the search after which to stop.
    """
    v, scale = step.v, step.scale
    price, best_price, spare = search.price, search.best_price, search.spare
    pricing, state, found = search.pricing, search.pricing.diving, search.pricing.generation
    K = v.size
    left, who = pricing.left[:K], pricing.who
    while True:
        if state.pricing == 0:
            if not _settle(step, search, m, answer):
                return -1
            if state.workers == 0:
                return state.tokens
            reset_master(m, left, state.workers, 2.0 * M + 1.0)
            begin_columns(search)
            state.pricing = 1
        size = state.workers
        sub = part(
            *(step, left, pricing.load[:size], pricing.slots[:size], pricing.rank[:size]),
            pricing.sums[: step.sums.size],
        )
        if not generate_columns(sub, search, m, M, least - state.tokens - 1, 300, stop):
            return UNFINISHED
        state.pricing = 0
        state.pivots += m.counts.pivots
        if used_up(search.known):
            return -1
        tokens, top, done = found.lowest, found.top, state.tokens
        if tokens == NONE or done + tokens // scale < least:
            return -1
        if top >= 0 and done + top >= target:
            for r in range(size):
                for q in range(sub.slots[r]):
                    answer[who[r], q] = spare[r, q]
            return done + top
        if found.converged == 0:
            return -1
        for k in range(K):
            price[k] = best_price[k]
