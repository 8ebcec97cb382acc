"""Improve an assignment: exchange requests with the pool, and between two workers; and leave a local optimum.

The three heaviest loads of each step tell the cost of any such exchange in T steps. A request that waits and one that
fills an empty slot are classes like others, so moving a request into an empty slot is an exchange, too.

A local optimum is left by a few requests of a worker that is heaviest at some step, which go elsewhere or wait.

Windows that all requests outlive (`lbopt.kernels.windows`) use the exchanges between two workers.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.draw import draw
from lbopt.kernels.known_ends.placing import add_loads, copy_rows, cost_of
from lbopt.kernels.known_ends.state import Draft, Tops, Window


@kernel
def note_tops(loads: Ints, tops: Tops) -> None:
    """Note the heaviest loads of each step, and whose they are, in `tops`."""
    W, T = loads.shape
    for h in range(T):
        a, b, c = 0, -(1 << 60), -(1 << 60)
        wa, wb = -1, -1
        for w in range(W):
            load = loads[w, h]
            if load > a:
                c, b, wb, a, wa = b, a, wa, load, w
            elif load > b:
                c, b, wb = b, load, w
            elif load > c:
                c = load
        tops.load[h], tops.worker[h] = a, wa
        tops.second_load[h], tops.second_worker[h] = b, wb
        tops.third_load[h] = c


@kernel
def heaviest_beside(tops: Tops, h: int, w: int, u: int) -> int:
    """Return the heaviest load at step h without those of w and u."""
    if tops.worker[h] != w and tops.worker[h] != u:
        return tops.load[h]
    if tops.second_worker[h] != w and tops.second_worker[h] != u:
        return tops.second_load[h]
    return tops.third_load[h]


@kernel
def _shift(window: Window, draft: Draft, w: int, q: int, k: int) -> None:
    """Give slot q of worker w a request of class k.

    Parameters
    ----------
    window, w, q, k
        The decision, the worker, its slot and the class.
    """
    old = draft.pattern[w, q]
    draft.pattern[w, q] = k
    for h in range(window.v.shape[1]):
        draft.loads[w, h] += window.v[k, h] - window.v[old, h]


@kernel
def _with_pool(window: Window, draft: Draft, w: int) -> int:
    """Exchange single requests of worker w with the pool while that helps; return the change of the cost.

    Parameters
    ----------
    rest
        (T,) int64, scratch.
    """
    v, total, must, G = window.v, window.total, window.must, window.workers
    loads, left, pattern, tops, rest = draft.loads, draft.left, draft.pattern, draft.tops, draft.rest
    K, T = v.shape
    change = 0
    for q in range(window.slots[w]):
        old = pattern[w, q]
        if must[old] == 1:
            continue
        now = 0
        for h in range(T):
            rest[h] = heaviest_beside(tops, h, w, w)
            now += max(rest[h], loads[w, h])
        best, chosen = 0, -1
        for k in range(K):
            if left[k] == 0 or k == old:
                continue
            gain = total[k] - total[old]
            limit = G * now + gain + best  # G * area has to stay below
            area = 0
            for h in range(T):
                area += max(rest[h], loads[w, h] + v[k, h] - v[old, h])
            if G * area < limit:
                best, chosen = G * (area - now) - gain, k
        if chosen >= 0:
            _shift(window, draft, w, q, chosen)
            left[old] += 1
            left[chosen] -= 1
            change += best
    return change


@kernel
def _between(window: Window, draft: Draft, w: int, u: int) -> int:
    """Make the best exchange of two requests between w and u, if one helps; return the change of the cost.

    Parameters
    ----------
    rest
        (T,) int64, scratch.
    """
    v, G = window.v, window.workers
    loads, pattern, tops, rest = draft.loads, draft.pattern, draft.tops, draft.rest
    T = v.shape[1]
    now, touched = 0, False
    for h in range(T):
        rest[h] = heaviest_beside(tops, h, w, u)
        both = max(loads[w, h], loads[u, h])
        touched |= both > rest[h]
        now += max(rest[h], both)
    if not touched:  # neither is ever the heaviest, and the work admitted stays the same
        return 0
    best, a, b = now, -1, -1
    for p in range(window.slots[w]):
        k = pattern[w, p]
        if p > 0 and pattern[w, p - 1] == k:
            continue
        for q in range(window.slots[u]):
            j = pattern[u, q]
            if j == k or (q > 0 and pattern[u, q - 1] == j):
                continue
            area = 0
            for h in range(T):
                moved = v[j, h] - v[k, h]
                area += max(rest[h], max(loads[w, h] + moved, loads[u, h] - moved))
                if area >= best:
                    break
            if area < best:
                best, a, b = area, p, q
    if a < 0:
        return 0
    k, j = pattern[w, a], pattern[u, b]
    _shift(window, draft, w, a, j)
    _shift(window, draft, u, b, k)
    return G * (best - now)


@kernel
def exchange_pairs(window: Window, draft: Draft, deadline: int) -> int:
    """Exchange requests between any two workers while the clock allows; return the change of the cost."""
    W, change = window.slots.size, 0
    note_tops(draft.loads, draft.tops)
    for w in range(W):
        if passed(deadline):
            break
        for u in range(w + 1, W):
            gained = _between(window, draft, w, u)
            if gained != 0:
                change += gained
                note_tops(draft.loads, draft.tops)
    return change


@kernel
def polish(window: Window, draft: Draft, rounds: int, deadline: int) -> int:
    """Improve draft in place, its loads and what is left being known; return its cost.

    There are no more than so many rounds, and none after one that changes nothing, or beyond the deadline.
    """
    cost = cost_of(window, draft.loads)
    note_tops(draft.loads, draft.tops)
    for _ in range(rounds):
        before = cost
        for w in range(window.slots.size):
            if passed(deadline):
                return cost
            change = _with_pool(window, draft, w)
            if change != 0:
                cost += change
                note_tops(draft.loads, draft.tops)
        cost += exchange_pairs(window, draft, deadline)
        if cost == before:
            break
    return cost


@kernel
def shake(window: Window, draft: Draft, pattern: Ints, moves: int, chance: Ints) -> None:
    """Set draft to `pattern` with about `moves` requests exchanged, most of them of a heaviest worker.

    Parameters
    ----------
    pattern, moves
        (W, Q) int64, classes, and how many exchanges are made.
    chance
        (1,) int64, the state of the draws; changed in place.
    """
    W, T = window.peak.shape
    copy_rows(draft.pattern, pattern)
    add_loads(window, draft)
    note_tops(draft.loads, draft.tops)
    heavy = draft.tops.worker[draw(chance, T)]
    if heavy < 0:
        heavy = draw(chance, W)
    for _ in range(moves):
        w = heavy if draw(chance, 3) > 0 else draw(chance, W)
        q = draw(chance, window.slots[w])
        old = draft.pattern[w, q]
        if draw(chance, 2) == 0 and window.must[old] == 0:
            k = draw(chance, window.n.size)
            if draft.left[k] > 0:
                draft.pattern[w, q] = k
                draft.left[k] -= 1
                draft.left[old] += 1
        else:
            u = draw(chance, W)
            p = draw(chance, window.slots[u])
            draft.pattern[w, q] = draft.pattern[u, p]
            draft.pattern[u, p] = old
    add_loads(window, draft)
