"""Assignments at an envelope, made at once: at prices, by need, or largest first.

At prices each worker in turn takes its best priced pattern among the requests that are left. By need the slot that
needs most takes the request nearest to its need. What a worker needs is its margin, less what it has, over its slots
that are left. The largest need is served first, so large requests go where there is room for them and small ones are
left for many slots; serving worker after worker may leave requests that fit none, where most of the pool is admitted.

An even start shares tokens out by need and uses its slack up; it is tried before a master program. Where workers have
room for more than they may take, the prices are often those of one threshold: all requests above it are admitted, and
go to workers that cannot be filled; the others are filled to the last token with smaller ones. A master program takes
long to say so, and its placements are a mixture. Serving the largest need first (`fill_evenly`) finds this division,
and exchanges (`exchange`) use up what is left.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.exchange import exchange
from lbopt.kernels.search.open_ranges import offer
from lbopt.kernels.search.pattern import best_pattern, last_fitting, prefix_best, smallest_sums
from lbopt.kernels.search.state import NONE, Search, Step
from lbopt.kernels.search.tables import choices_of

#: Branches of the search for a worker's pattern: assignments are filled by the dozen, and any good pattern will do.
FILLING = 300


@kernel
def fill(step: Step, search: Search, M: int, pattern: Ints) -> int:
    """Serve all workers at search.price; return the tokens admitted, -1 where one or a forced request fails.

    Beyond the deadline it fails, too. Writes pattern[w, :slots[w]]; up to 3 slots[w] is scratch.

    Workers come in the order of step.rank, fewest slots and tightest margin first: they have the least choice.
    Profits are tilted by 1/scale a token, so that among equally good patterns the one with most tokens is taken.
    """
    v, slots, filling = step.v, step.slots, search.filling
    p, now, scale = filling.profit, filling.left, step.scale + 1
    choices = choices_of(step, search, p, now, filling.best, filling.sums, scale)
    tokens = lowest = 0
    for k in range(v.size):
        now[k] = step.n[k]
        p[k] = scale * v[k] - search.price[k]
        lowest = min(lowest, search.price[k])
    for r in range(slots.size):
        if used_up(search.known):
            return -1
        w = step.rank[r]
        c, margin = slots[w], M - step.load[w]
        smallest_sums(v, now, filling.sums[: c + 1])
        prefix_best(v.size, p, now, filling.best)
        full = scale * margin - c * lowest
        value, _ = best_pattern(choices, c, margin, full, full, FILLING, pattern[w])
        if value == NONE:
            return -1
        for q in range(c):
            now[pattern[w, q]] -= 1
            tokens += v[pattern[w, q]]
    if step.forced > 0:
        for k in range(v.size):
            if step.floor[k] < 0 and now[k] > 0:
                return -1
    return tokens


@kernel
def fill_evenly(step: Step, search: Search, M: int, first: int, pattern: Ints) -> int:
    """Serve the workers from `first` on; return the tokens admitted, -1 where a slot can take nothing that is left."""
    v, load, slots = step.v, step.load, step.slots
    W, K = load.size, v.size
    left, room, taken = search.filling.left, search.exchanging.slack, search.exchanging.number
    total = tokens = 0
    for k in range(K):
        left[k] = step.n[k]
    for w in range(first):
        for q in range(slots[w]):
            left[pattern[w, q]] -= 1
            tokens += v[pattern[w, q]]
    for w in range(first, W):
        room[w], taken[w] = M - load[w], 0
        total += slots[w]
    for _ in range(total):
        u, most = -1, 0
        for w in range(first, W):
            rest = slots[w] - taken[w]
            if rest > 0 and (u < 0 or room[w] // rest > most):
                u, most = w, room[w] // rest
        rest = slots[u] - taken[u]
        k = last_fitting(v, most)
        while k >= 0 and left[k] == 0:
            k -= 1
        if rest > 1:  # nearest from above or below; the last slot may not exceed what is left
            above = last_fitting(v, most) + 1
            while above < K and left[above] == 0:
                above += 1
            # what the other slots take is at least as much as the smallest requests
            fits = above < K and v[above] + step.sums[rest - 1] <= room[u]
            if fits and (k < 0 or v[above] - most < most - v[k]):
                k = above
        if k < 0:
            return -1
        left[k] -= 1
        pattern[u, taken[u]] = k
        room[u] -= v[k]
        taken[u] += 1
        tokens += v[k]
    return tokens


@kernel
def pack(step: Step, M: int, room: Ints, taken: Ints, pattern: Ints) -> int:
    """Place what fits, largest first, each on the worker with most room; return its tokens.

    Slots that stay empty hold class 0, which is of size 0.
    """
    v, load, slots = step.v, step.load, step.slots
    W = load.size
    for w in range(W):
        room[w], taken[w] = M - load[w], 0
        for q in range(slots[w]):
            pattern[w, q] = 0
    tokens = 0
    for k in range(v.size - 1, 0, -1):
        for _ in range(step.n[k]):
            best = -1
            for w in range(W):
                if taken[w] < slots[w] and room[w] >= v[k] and (best < 0 or room[w] > room[best]):
                    best = w
            if best < 0:
                break
            pattern[best, taken[best]] = k
            taken[best] += 1
            room[best] -= v[k]
            tokens += v[k]
    return tokens


#: Looks of each worker at an exchange: at a time, as long as a quarter of what is missing is found in this time, and
#: where less is missing than another token of envelope costs.
_LOOKS, _LAST_LOOKS = 3, 20


@kernel
def try_even_start(step: Step, search: Search, i: int) -> bool:
    """Offer an even assignment at the envelope of range i; return whether it admits what the bound asks for.

    Not where requests must be admitted: exchanges may leave one of these waiting.
    """
    this = search.ranges[i]
    if step.forced > 0:
        return False
    M, target = this.last, step.workers * this.first - step.total - this.bound
    return _fill_and_exchange(step, search, M, target) >= target


@kernel
def _fill_and_exchange(step: Step, search: Search, M: int, target: int) -> int:
    """Offer an even assignment at envelope M, improved up to `target` tokens; return its tokens, -1 for none."""
    known, W = search.known, step.load.size
    known.work += W
    tokens = fill_evenly(step, search, M, 0, search.kept)
    if tokens < 0:
        return -1
    lacking = 2 * (target - tokens)
    while tokens < target and 4 * (target - tokens) <= 3 * lacking and not used_up(known):
        lacking, looks = target - tokens, _LOOKS * W
        known.work += looks
        tokens = exchange(step, search.exchanging, known, M, target, looks, 0, search.kept)
    if target - step.workers < tokens < target:
        looks = _LAST_LOOKS * W
        known.work += looks
        tokens = exchange(step, search.exchanging, known, M, target, looks, 0, search.kept)
    offer(step, search, search.kept, tokens)
    return tokens
