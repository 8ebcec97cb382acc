"""Use up slack at a fixed envelope: it wanders from worker to worker until one of them can fill itself with it.

A worker with tokens free up to the envelope first looks for a better pattern in what it has and what waits, with up to
three of its slots open. Where there is none it exchanges one request with another worker, so that as much of its slack
as possible goes over to that one, which looks in its turn. No step loses tokens. Where many requests are placed at
once, the prices say little about who takes which, and this finds assignments that they allow.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.pattern import best_pattern, last_fitting, prefix_best, smallest_sums
from lbopt.kernels.search.state import Search, Step

#: Slots of a worker that are open at a time, and branches of the search for what to fill them with.
OPENED, BRANCHES = 3, 300

#: Workers that may take over slack, of which one is taken at random.
_PARTNERS = 16

#: Where the draws of seed 0 begin, and how many beginnings there are.
_FIRST, _SEEDS = 54321, 2_000_000_000

_MODULUS = 2147483647


@kernel
def _draw(state: int) -> int:
    """Return the next number of MINSTD; it never overflows."""
    return state * 48271 % _MODULUS


@kernel
def exchange(step: Step, search: Search, M: int, target: int, rounds: int, pattern: Ints) -> int:
    """Improve pattern[w, :slots[w]] in place; return the tokens admitted, at least `target` where that was reached.

    Workers whose slack is no more than what their best pattern by itself leaves, at the prices of the last evaluation
    (search.bound), are done.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, whose scratch changes in place.
    M, target
        Envelope; tokens that suffice.
    rounds
        Most rounds: looks of one worker.
    pattern
        int64 (W, Q) at least, changed in place: classes of each worker.
    """
    v, load, slots = step.v, step.load, step.slots
    W, K = load.size, v.size
    scratch = search.rematching
    slack, avail, p, best, sums, other = (
        scratch.slack,
        scratch.avail,
        scratch.profit,
        scratch.best,
        scratch.sums,
        scratch.pattern,
    )
    least = scratch.opened
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
        # one slot: what no request fills
        least[w] = M - load[w] - v[last_fitting(v, M - load[w])] if slots[w] == 1 else 0
    state = _FIRST + search.known.seed % _SEEDS
    u = 0
    for _ in range(rounds):
        if tokens >= target or used_up(search.known):
            break
        looked = 0
        while looked < W and slack[u] <= least[u]:
            u = (u + 1) % W
            looked += 1
        if looked == W:
            break
        c = slots[u]
        # open some slots, drawn one after the other and moved to the front
        opened = min(c, OPENED)
        before = 0
        for q in range(opened):
            state = _draw(state)
            r = q + state % (c - q)
            pattern[u, q], pattern[u, r] = pattern[u, r], pattern[u, q]
            before += v[pattern[u, q]]
            avail[pattern[u, q]] += 1
        smallest_sums(v, avail, sums[: opened + 1])
        prefix_best(K, p, avail, best)
        room = before + slack[u]
        value, _ = best_pattern(
            *(room, opened, 1, room, room, BRANCHES, v, p, avail, best, sums, other, scratch.pair),
            *(0, 0, best, best, search.known),
        )
        if value > before:
            for q in range(opened):
                pattern[u, q] = other[q]
            slack[u] -= value - before
            tokens += value - before
        for q in range(opened):
            avail[pattern[u, q]] -= 1
        if value > before:
            continue
        # hand the slack on: one request of u for a larger one of another worker, larger by no more than the slack
        state = _draw(state)
        first = state % W
        give, take, top, partner = -1, -1, 0, -1
        some = (state >> 8) % 2 == 0
        seen = 0
        for i in range(W):
            w = (first + i) % W
            if w == u:
                continue
            for q in range(c):
                for r in range(slots[w]):
                    d = v[pattern[w, r]] - v[pattern[u, q]]
                    if top < d <= slack[u]:
                        give, take, top, partner = q, r, d, w
            seen += 1
            if seen == _PARTNERS or top == slack[u] or (some and top > 0):
                break
        if partner >= 0:
            pattern[u, give], pattern[partner, take] = pattern[partner, take], pattern[u, give]
            slack[u] -= top
            slack[partner] += top
            u = partner
        else:
            u = (u + 1) % W
    return tokens
