"""Improve an assignment at a fixed envelope: one slot of every worker is opened and all of them are refilled at once.

With its other requests fixed, the open slot of worker w can hold any request of at most (what is in it) + (what is free
up to the envelope). Such limits are nested, so the best refilling of all open slots together is a greedy matching: in
ascending order of the limits, each slot takes the largest request left that fits. It never loses tokens. Rounds repeat
with other slots open, chosen by a small generator of its own (MINSTD), and between rounds one worker after
the other takes its best pattern from what it has and what is left.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.draw import following
from lbopt.kernels.search.pattern import BRANCHES, best_pattern, last_fitting, prefix_best, smallest_sums
from lbopt.kernels.search.state import Search, Step

#: Where the draws of seed 0 begin, and how many beginnings there are.
_FIRST, _SEEDS = 12345, 2_000_000_000

#: Workers with more slots than this keep their patterns between rounds.
MOST_SLOTS = 4


@kernel
def rematch(step: Step, search: Search, M: int, target: int, rounds: int, pattern: Ints) -> int:
    """Improve pattern[w, :slots[w]] in place; return the tokens admitted, at least `target` where that was reached.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    M, target
        Envelope; tokens that suffice.
    rounds
        Most rounds.
    pattern
        int64 (W, Q) at least, changed in place: classes of each worker.
    """
    v, load, slots = step.v, step.load, step.slots
    W, K = load.size, v.size
    scratch = search.rematching
    slack, opened, link, head = scratch.slack, scratch.opened, scratch.link, scratch.head
    avail, p, best, sums, other = scratch.avail, scratch.profit, scratch.best, scratch.sums, scratch.pattern
    tokens = 0
    for k in range(K):
        avail[k], p[k] = step.n[k], v[k]
    for w in range(W):
        slack[w] = M - load[w]
        for q in range(slots[w]):
            k = pattern[w, q]
            avail[k] -= 1
            slack[w] -= v[k]
            tokens += v[k]
    state = _FIRST + search.known.seed % _SEEDS
    for turn in range(rounds):
        if tokens >= target or used_up(search.known):
            break
        # Open one slot a worker, and bucket the workers by the largest class the open slot can hold.
        for k in range(K):
            head[k] = -1
        for w in range(W):
            state = following(state)
            q = state % slots[w]
            k = pattern[w, q]
            opened[w] = q
            avail[k] += 1
            slack[w] += v[k]
            tokens -= v[k]
            limit = last_fitting(v, slack[w])
            link[w] = head[limit]
            head[limit] = w
        for limit in range(K):
            w = head[limit]
            k = limit
            while w >= 0:
                while avail[k] == 0:
                    k -= 1
                avail[k] -= 1
                pattern[w, opened[w]] = k
                slack[w] -= v[k]
                tokens += v[k]
                w = link[w]
        # One worker after the other may take another pattern altogether.
        w = turn % W
        c = slots[w]
        if 1 < c <= MOST_SLOTS and slack[w] > 0:
            before = 0
            for q in range(c):
                avail[pattern[w, q]] += 1
                before += v[pattern[w, q]]
            smallest_sums(v, avail, sums[: c + 1])
            prefix_best(K, p, avail, best)
            full = slack[w] + before
            value, _ = best_pattern(
                *(full, c, 1, full, full, BRANCHES, v, p, avail, best, sums, other, scratch.pair),
                *(0, 0, best, best, search.known),
            )
            if value > before:
                for q in range(c):
                    pattern[w, q] = other[q]
                slack[w] -= value - before
                tokens += value - before
            for q in range(c):
                avail[pattern[w, q]] -= 1
    return tokens
