"""Use up slack at a fixed envelope: it wanders from worker to worker until one of them can fill itself with it.

A worker with room left up to the envelope first looks for one or two requests that wait, of more value than one or two
of its own. Where there are none, it exchanges a request with another worker, so that as much as possible of its slack
goes over to that one, which looks in its turn; the decision is worth no less then. Where nothing has been gained for
some time, some worker takes a smaller request for one of its own, which sets slack free; what that leads to is undone
where it gains nothing. The plain search has the same (`lbopt.kernels.search.exchange`); here the work of a request
depends on the worker, some may not take it, and resources have limits.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.state import FORBIDDEN, Search, Step, book
from lbopt.kernels.deadline import used_up
from lbopt.kernels.draw import following

#: Workers that slack is handed on to before the next worker's turn; looks without a gain after which slack is set free.
_HOPS, _PATIENCE = 8, 40


@kernel
def hand_slack(step: Step, s: Search, missing: int, looks: int) -> int:
    """Improve the decision in s.leaf by at least `missing` of value, if possible; return the gain."""
    W, known, spare = step.slots.size, s.known, s.spare
    state, gain, best, since = 54321, 0, 0, 0
    _save(step, s)
    turn, u, giver, hops = 0, 0, -1, _HOPS
    for _ in range(looks):
        if gain >= missing or used_up(known):
            break
        if since == _PATIENCE:
            if gain < best:
                gain = best
                _restore(step, s)
            else:
                best = gain
                _save(step, s)
            state, u, lost = _set_free(step, s, state)
            gain -= lost
            giver, hops, since = -1, 0, 0
        if hops == _HOPS or spare[0, u] <= 0:
            looked = 0
            while looked < W and (spare[0, turn] <= 0 or step.slots[turn] == 0):
                turn = turn + 1 if turn + 1 < W else 0
                looked += 1
            if looked == W:
                break
            u, giver, hops = turn, -1, 0
            turn = turn + 1 if turn + 1 < W else 0
        since += 1
        book(s, (step.copies.size + W) * step.slots[u])
        more = _refill(step, s, u)
        if more > 0:
            gain += more
            if gain > best:
                since = 0
            continue
        state = following(state)
        partner, more = _hand_on(step, s, u, giver, state)
        gain += more
        giver = u
        if partner >= 0:
            u = partner
            hops += 1
        else:
            hops = _HOPS
    if gain < best:
        gain = best
        _restore(step, s)
    return gain


@kernel
def _save(step: Step, s: Search) -> None:
    """Keep the decision in s.leaf as s.saved."""
    for w in range(step.slots.size):
        for q in range(step.slots[w]):
            s.saved[w, q] = s.leaf[w, q]


@kernel
def _restore(step: Step, s: Search) -> None:
    """Make s.saved the decision again."""
    for w in range(step.slots.size):
        for q in range(step.slots[w]):
            if s.leaf[w, q] != s.saved[w, q]:
                _exchange_for(step, s, w, q, s.saved[w, q])


@kernel
def _exchange_for(step: Step, s: Search, w: int, q: int, k: int) -> None:
    """Give worker w class k instead of what is in its slot q."""
    own, spare, need = s.leaf[w, q], s.spare, step.need
    s.avail[own] += 1
    s.avail[k] -= 1
    s.leaf[w, q] = k
    spare[0, w] += step.work[w, own] - step.work[w, k]
    spare[1, w] += need[0, own] - need[0, k]
    spare[2, w] += need[1, own] - need[1, k]


@kernel
def _set_free(step: Step, s: Search, state: int) -> tuple[int, int, int]:
    """Give some worker the next smaller request that waits for one of its own; return next draw, worker, loss."""
    state = following(state)
    w = state % step.slots.size
    state = following(state)
    first = s.path.placed[w]
    if step.slots[w] <= first:
        return state, w, 0
    q = first + state % (step.slots[w] - first)
    own, choice, most = s.leaf[w, q], -1, -1
    for k in range(step.copies.size):
        work = step.work[w, k]
        smaller = s.avail[k] > 0 and most < work < step.work[w, own] and s.path.banned[w, k] == 0
        if smaller and _room_for(step.need, s.spare, w, own, k):
            choice, most = k, work
    if choice < 0 or step.floor[own] < 0:
        return state, w, 0
    _exchange_for(step, s, w, q, choice)
    return state, w, step.value[w, own] - step.value[w, choice]


@kernel
def _refill(step: Step, s: Search, u: int) -> int:
    """Give worker u waiting requests for one or two of its own where that gains most; return the gain."""
    value, work, need, leaf, item = step.value[u], step.work[u], step.need, s.leaf[u], s.item
    spare = s.spare
    room, one, two = spare[0, u], spare[1, u], spare[2, u]
    n, avail, banned, placed, q = 0, s.avail, s.path.banned[u], s.path.placed[u], step.slots[u]
    for i in range(step.copies.size):  # what waits and may come here, by work
        k = s.ordered[u, i]
        if avail[k] > 0 and banned[k] == 0 and work[k] < FORBIDDEN:
            item[n] = k
            n += 1
    best, a, b, c, d = 0, -1, -1, -1, -1
    for i in range(placed, q):
        if step.floor[leaf[i]] < 0:
            continue
        own = leaf[i]
        for e in range(n):
            k = item[e]
            if work[k] - work[own] > room:
                break
            if value[k] - value[own] > best and _room_for(need, s.spare, u, own, k):
                best, a, b, c, d = value[k] - value[own], i, -1, k, -1
        if best >= room:
            break
    for i in range(placed, q):
        if best >= room:
            break
        for j in range(i + 1, q):
            first, second = leaf[i], leaf[j]
            if step.floor[first] < 0 or step.floor[second] < 0:
                continue
            now = value[first] + value[second]
            most = room + work[first] + work[second]
            low, high = 0, n - 1
            while low <= high:
                k, h = item[low], item[high]
                if work[k] + work[h] > most:
                    high -= 1
                    continue
                more = value[k] + value[h] - now
                fits = need[0, k] + need[0, h] <= one + need[0, first] + need[0, second]
                fits = fits and need[1, k] + need[1, h] <= two + need[1, first] + need[1, second]
                if more > best and fits and (k != h or avail[k] > 1):
                    best, a, b, c, d = more, i, j, k, h
                low += 1
            if best >= room:
                break
    if a >= 0:
        _exchange_for(step, s, u, a, c)
        if b >= 0:
            _exchange_for(step, s, u, b, d)
    return best


@kernel
def _hand_on(step: Step, s: Search, u: int, giver: int, state: int) -> tuple[int, int]:
    """Exchange a request of worker u for a larger one of another, and return that worker, -1 for none, and the gain.

    The larger one exceeds by no more than the slack of u, or than a part of it, as drawn. It goes not back to where the
    slack came from.
    """
    value, work, need, leaf, spare, path = step.value, step.work, step.need, s.leaf, s.spare, s.path
    most = spare[0, u]
    if (state >> 8) % 2 == 0:
        most = 1 + (state >> 9) % most
    top, gained, give, taker, take = 0, 0, -1, -1, -1
    W, first = step.slots.size, state % step.slots.size
    for turn in range(W):
        w = first + turn if first + turn < W else first + turn - W
        if w in (u, giver):
            continue
        for j in range(path.placed[w], step.slots[w]):
            b = leaf[w, j]
            if work[u, b] >= FORBIDDEN or path.banned[u, b] == 1:
                continue
            for i in range(path.placed[u], step.slots[u]):
                a = leaf[u, i]
                more = work[u, b] - work[u, a]
                if top < more <= most and work[w, a] - work[w, b] <= spare[0, w] and path.banned[w, a] == 0:
                    gain = value[u, b] - value[u, a] + value[w, a] - value[w, b]
                    if gain >= 0 and _room_for(need, spare, u, a, b) and _room_for(need, spare, w, b, a):
                        top, gained, give, taker, take = more, gain, i, w, j
        if top == most:
            break
    if taker < 0:
        return -1, 0
    a, b = leaf[u, give], leaf[taker, take]
    _exchange_for(step, s, u, give, b)
    _exchange_for(step, s, taker, take, a)
    return taker, gained


@kernel
def _room_for(need: Ints, spare: Ints, w: int, old: int, new: int) -> bool:
    """Return whether the resources of worker w have room for a request in the place of another."""
    return need[0, new] - need[0, old] <= spare[1, w] and need[1, new] - need[1, old] <= spare[2, w]


@kernel
def room_left(step: Step, s: Search, M: int) -> None:
    """Set s.spare to what each worker has left of its margin and of the two resources."""
    spare, room, need = s.spare, step.room, step.need
    for w in range(step.slots.size):
        spare[0, w] = M - step.load[w] + step.mode_cut[s.leaf_mode[w]]
        spare[1, w], spare[2, w] = room[0, w], room[1, w]
        for i in range(step.slots[w]):
            k = s.leaf[w, i]
            spare[0, w] -= step.work[w, k]
            spare[1, w] -= need[0, k]
            spare[2, w] -= need[1, k]
