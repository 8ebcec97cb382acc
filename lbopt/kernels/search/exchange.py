"""Use up slack at a fixed envelope: it wanders from worker to worker until one of them can fill itself with it.

A worker with tokens free up to the envelope first looks for a better pattern in what it has and what waits, with up to
three of its slots open. Where there is none it exchanges one request with another worker, so that its slack, or as much
of it as possible, goes over to that one, which looks in its turn. None of this loses tokens. Where nothing has been
gained for some time, a worker takes a smaller request for one of its own, which sets free more slack; if that leads to
nothing, it is undone. Where many requests are placed at once, the prices say little about who takes which, and this
finds assignments that they allow.
"""

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.draw import following
from lbopt.kernels.search.pattern import best_pattern, last_fitting, prefix_best, smallest_sums
from lbopt.kernels.search.state import Choices, Exchanging, Step

#: Slots of a worker that are open at a time, and branches of the search for what to fill them with.
OPENED, BRANCHES = 3, 300

#: Workers that slack is handed on to before the next worker's turn.
HOPS = 8

#: Looks without a gain after which slack is set free, or what that led to is undone.
PATIENCE = 30

#: Most slots of a worker that has few, and how many have more where slack finds a use: one in so many workers.
FEW, _SHARE = 2, 3

#: Where the draws of seed 0 begin, and how many beginnings there are.
_FIRST, _SEEDS = 54321, 2_000_000_000


@kernel
def with_few_slots(step: Step) -> int:
    """Return how many workers have few slots; -1 where there are not enough others."""
    W = step.load.size
    few = 0
    while few < W and step.slots[few] <= FEW:
        few += 1
    return few if _SHARE * (W - few) >= W and step.forced == 0 else -1


@kernel
def exchange(
    step: Step, scratch: Exchanging, known: Record, M: int, target: int, rounds: int, first: int, pattern: Ints
) -> int:
    """Improve pattern[w, :slots[w]] in place; return the tokens admitted, at least `target` where that was reached."""
    v, load, slots = step.v, step.load, step.slots
    W, K = load.size, v.size
    slack, least, avail, holder = scratch.slack, scratch.number, scratch.avail, scratch.holder
    tokens = 0
    for k in range(K):
        avail[k], scratch.profit[k], holder[k] = step.n[k], v[k], -1
    for w in range(W):
        slack[w] = M - load[w]
        for q in range(slots[w]):
            k = pattern[w, q]
            avail[k] -= 1
            holder[k] = w if w >= first else -1
            slack[w] -= v[k]
            tokens += v[k]
        # what no request fills: of one slot, or where the largest requests do not
        least[w] = M - load[w] - v[last_fitting(v, M - load[w])] if slots[w] == 1 else 0
        if slots[w] > 1 and v[K - 1] * slots[w] < M - load[w]:
            least[w] = M - load[w] - _largest_sum(v, step.n, slots[w])
    choices = Choices(
        v, scratch.profit, avail, scratch.best, scratch.sums, scratch.pair, scratch.best, scratch.best, known, 1, 0, 0
    )
    state = _FIRST + known.seed % _SEEDS
    saved, best, since = scratch.saved, tokens, 0
    _copy(step, pattern, saved, first)
    turn, u, giver, hops = first, first, -1, HOPS
    for _ in range(rounds):
        if tokens >= target or used_up(known):
            break
        if since == PATIENCE:
            if tokens < best:
                tokens = best
                _restore(step, scratch, M, saved, pattern, first)
            else:
                best = tokens
                _copy(step, pattern, saved, first)
            state, u, lost = _set_free(step, scratch, state, pattern, first)
            tokens -= lost
            giver, hops, since = -1, 0, 0
        if hops == HOPS or slack[u] <= least[u]:  # the next worker in turn that has slack
            looked = first
            while looked < W and slack[turn] <= least[turn]:
                turn = turn + 1 if turn + 1 < W else first
                looked += 1
            if looked == W:
                break
            u, giver, hops = turn, -1, 0
            turn = turn + 1 if turn + 1 < W else first
        state, gained = _refill(step, scratch, choices, u, state, pattern)
        tokens += gained
        since += 1
        if gained > 0:
            if tokens > best:
                since = 0
            continue
        state = following(state)
        partner = _hand_on(step, scratch, u, giver, state, pattern)
        giver = u
        if partner >= 0:
            u = partner
            hops += 1
        else:
            hops = HOPS
    if tokens < best:
        tokens = best
        _restore(step, scratch, M, saved, pattern, first)
    return tokens


@kernel
def _largest_sum(v: Ints, avail: Ints, count: int) -> int:
    """Return the total of the `count` largest requests that there are."""
    total, k = 0, v.size - 1
    while k >= 0 and count > 0:
        taken = min(count, avail[k])
        total += taken * v[k]
        count -= taken
        k -= 1
    return total


@kernel
def _copy(step: Step, pattern: Ints, saved: Ints, first: int) -> None:
    """Copy the patterns of the workers from `first` on to `saved`."""
    for w in range(first, step.slots.size):
        for q in range(step.slots[w]):
            saved[w, q] = pattern[w, q]


@kernel
def _restore(step: Step, scratch: Exchanging, M: int, saved: Ints, pattern: Ints, first: int) -> None:
    """Give the workers from `first` on their saved patterns back."""
    for w in range(first, step.slots.size):
        for q in range(step.slots[w]):
            scratch.avail[pattern[w, q]] += 1
    for w in range(first, step.slots.size):
        scratch.slack[w] = M - step.load[w]
        for q in range(step.slots[w]):
            k = saved[w, q]
            pattern[w, q] = k
            scratch.avail[k] -= 1
            scratch.holder[k] = w
            scratch.slack[w] -= step.v[k]


@kernel
def _set_free(step: Step, scratch: Exchanging, state: int, pattern: Ints, first: int) -> tuple[int, int, int]:
    """Give some worker a smaller request that waits for one of its own; return the next draw, the worker, the loss."""
    state = following(state)
    w = first + state % (step.slots.size - first)
    state = following(state)
    q = state % step.slots[w]
    own = pattern[w, q]
    k = own - 1
    while k >= 0 and scratch.avail[k] == 0:
        k -= 1
    if k < 0:
        return state, w, 0
    scratch.avail[own] += 1
    scratch.avail[k] -= 1
    pattern[w, q] = k
    scratch.holder[k] = w
    lost = step.v[own] - step.v[k]
    scratch.slack[w] += lost
    return state, w, lost


@kernel
def _refill(step: Step, scratch: Exchanging, c: Choices, u: int, state: int, pattern: Ints) -> tuple[int, int]:
    """Open some slots of worker u and refill them if that gains tokens; return the next draw, and the gain."""
    v, avail, slots, other = step.v, scratch.avail, step.slots[u], scratch.pattern
    opened = min(slots, OPENED)
    before = 0
    for q in range(opened):  # those opened are drawn one after the other and moved to the front
        state = following(state)
        r = q + state % (slots - q)
        pattern[u, q], pattern[u, r] = pattern[u, r], pattern[u, q]
        before += v[pattern[u, q]]
        avail[pattern[u, q]] += 1
    smallest_sums(v, avail, c.sums[: opened + 1])
    prefix_best(v.size, c.p, avail, c.best)
    room = before + scratch.slack[u]
    most = _largest_sum(v, avail, opened)
    value, _ = best_pattern(c, opened, room, room, most, BRANCHES, other)
    if value > before:
        for q in range(opened):
            pattern[u, q] = other[q]
            scratch.holder[other[q]] = u
        scratch.slack[u] = room - value
    for q in range(opened):
        avail[pattern[u, q]] -= 1
    return state, max(0, value - before)


@kernel
def _hand_on(step: Step, scratch: Exchanging, u: int, giver: int, state: int, pattern: Ints) -> int:
    """Exchange a request of worker u for a larger one of another worker, and return that one; -1 where there is none.

    The larger one exceeds by no more than the slack of u, or than a part of it, as drawn. It goes not back to where the
    slack came from.
    """
    v, c, slack, holder = step.v, step.slots[u], scratch.slack, scratch.holder
    first, most = state % c, slack[u]
    if (state >> 8) % 2 == 0:
        most = 1 + (state >> 9) % slack[u]
    give, top, taken = -1, 0, -1
    for i in range(c):
        q = (first + i) % c
        k = pattern[u, q] + 1
        while k < v.size and v[k] - v[pattern[u, q]] <= most:
            w = holder[k]
            if w >= 0 and w != u and w != giver and v[k] - v[pattern[u, q]] > top:
                held = False
                for r in range(step.slots[w]):
                    held = held or pattern[w, r] == k
                if held:
                    give, top, taken = q, v[k] - v[pattern[u, q]], k
                else:
                    holder[k] = -1
            k += 1
        if top == most:
            break
    if give < 0:
        return -1
    w, r = holder[taken], 0
    while pattern[w, r] != taken:
        r += 1
    given = pattern[u, give]
    pattern[u, give], pattern[w, r] = taken, given
    holder[taken], holder[given] = u, w
    slack[u] -= top
    slack[w] += top
    return w
