"""Improve an assignment: single workers against the pool, and exchanges between two workers.

With the others fixed, the cost of worker w is convex and piecewise linear in S_w: it falls by T a token until ceil(T/G)
steps of the window have w as their heaviest worker, and rises from there. So the best total is the nearest possible one
below or above that point, whichever costs less. The exchanges are those of `lbopt.kernels.known_ends.polish`.
"""

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.known_ends.placing import add_loads, cost_of
from lbopt.kernels.known_ends.polish import exchange_pairs, heaviest_beside, note_tops
from lbopt.kernels.known_ends.state import Draft as Made
from lbopt.kernels.windows.placing import nearest, total_of
from lbopt.kernels.windows.state import Draft, Pool, Scratch, Window

#: Requests of a worker that are reopened.
_LOOKED_AT = 16


@kernel
def cost_of_change(made: Made, G: int, w: int, change: int) -> int:
    """Return G * sum_h max_h - T * change where S_w grows by `change`; made.rest are the others, made.loads its own."""
    T, area = made.rest.size, 0
    for h in range(T):
        area += max(made.rest[h], made.loads[w, h] + change)
    return G * area - T * change


@kernel
def ideal_change(made: Made, G: int, w: int, gaps: Ints) -> int:
    """Return the change of S_w of least cost; `gaps` (T,) is scratch."""
    T = made.rest.size
    for h in range(T):
        gap = made.rest[h] - made.loads[w, h]
        at = h
        while at > 0 and gaps[at - 1] > gap:
            gaps[at] = gaps[at - 1]
            at -= 1
        gaps[at] = gap
    return gaps[min(T, (T + G - 1) // G) - 1]


@kernel
def polish(window: Window, draft: Draft, rounds: int, scratch: Scratch, progress: Record) -> int:
    """Improve draft.pattern (its requests taken from draft.left, its sums in draft.placed); return its cost.

    There are no more than so many rounds, and none after one that changes nothing, or where no time is left.
    """
    fleet, made = window.fleet, draft.made
    add_loads(fleet, made)
    cost = cost_of(fleet, made.loads)
    for _ in range(rounds):
        before = cost
        cost += _single_workers(window, draft, scratch, progress)
        if out_of_time(progress):
            break
        cost += exchange_pairs(fleet, made, progress.deadline)
        if cost == before:
            break
    return cost


@kernel
def _single_workers(window: Window, draft: Draft, scratch: Scratch, progress: Record) -> int:
    """Reopen one slot, or two, of each worker; return the change of the cost."""
    pool, made, G, slots = window.pool, draft.made, window.fleet.workers, window.slots
    v, left, pattern = pool.v, draft.left, draft.pattern
    below, above = scratch.below, scratch.above
    T = made.rest.size
    change = 0
    stale = True
    for w in range(slots.size):
        if out_of_time(progress):
            break
        c = slots[w]
        if stale:
            note_tops(made.loads, made.tops)
            stale = False
        for h in range(T):
            made.rest[h] = heaviest_beside(made.tops, h, w, w)
        now, ideal, n = cost_of_change(made, G, w, 0), ideal_change(made, G, w, scratch.gaps), min(c, 2)
        for a in range(max(1, min(c - 1, _LOOKED_AT))):
            for b in range(a + 1, min(c, a + 4) if n == 2 else a + 2):  # of many slots, near ones do
                k, j = pattern[w, a], (pattern[w, b] if n == 2 else -1)
                left[k] += 1
                taken = v[k]
                if n == 2:
                    left[j] += 1
                    taken += v[j]
                nearest(v, left, n, ideal + taken, below, above)
                best, chosen = now, below
                for side in range(2):
                    tried = below if side == 0 else above
                    if tried[0] >= 0:
                        cost = cost_of_change(made, G, w, total_of(v, tried, n) - taken)
                        if cost < best and _may_leave(pool, left, k, j, tried, n):
                            best, chosen = cost, tried
                if best < now:
                    k = pattern[w, a] = chosen[0]
                    if n == 2:
                        j = pattern[w, b] = chosen[1]
                    grown = total_of(v, chosen, n) - taken
                    for h in range(T):
                        made.loads[w, h] += grown
                    change += best - now
                    now, ideal = best + T * grown, ideal - grown
                    stale = True
                left[k] -= 1
                if n == 2:
                    left[j] -= 1
    return change


@kernel
def _may_leave(pool: Pool, left: Ints, k: int, j: int, new: Ints, n: int) -> bool:
    """Return whether enough requests that must be admitted stay when classes k, j (now in left) give way to `new`.

    j is -1 where only one goes; `n` are those that come.
    """
    for old in (k, j):
        if old >= 0:
            taken = 1 if old == new[0] else 0
            if n == 2 and old == new[1]:
                taken += 1
            if left[old] - taken > pool.n[old] - pool.must[old]:
                return False
    return True
