"""Improve an assignment: single workers against the pool, and exchanges between two workers.

With the others fixed, the cost of worker w is convex and piecewise linear in S_w: it falls by T a token until ceil(T/G)
steps of the window have w as their heaviest worker, and rises from there. So the best total is the nearest possible one
below or above that point, whichever costs less.
"""

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.windows.placing import cost_of, nearest, total_of
from lbopt.kernels.windows.state import Draft, Pool, Profile, Scratch, Tops

_INFINITY = 1 << 60

#: Requests of a worker that are tried in an exchange; twice as many alone.
_LOOKED_AT = 8


@kernel
def _columns(tops: Tops) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the fields in their order: loops run faster over arrays that they need not look up at each step."""
    return tops.load, tops.worker, tops.second_load, tops.second_worker, tops.third_load


@kernel
def note_tops(profile: Profile, sums: Ints, tops: Tops) -> None:
    """Note the heaviest loads of each step, and whose they are, in `tops`."""
    peak, floor = profile.peak, profile.floor
    first, worker, second, second_worker, third = _columns(tops)
    W, T = peak.shape
    for h in range(T):
        a, b, c = floor[h], -_INFINITY, -_INFINITY
        wa, wb = -1, -1
        for w in range(W):
            load = peak[w, h] + sums[w]
            if load > a:
                c, b, wb, a, wa = b, a, wa, load, w
            elif load > b:
                c, b, wb = b, load, w
            elif load > c:
                c = load
        first[h], worker[h], second[h], second_worker[h], third[h] = a, wa, b, wb, c


@kernel
def cost_alone(peak: Ints, G: int, tops: Tops, w: int, total: int) -> int:
    """Return G * sum_h max_h - T * S_w with S_w = total and the others as noted in tops.

    Parameters
    ----------
    peak
        (W, T) int64, loads without sizes, tokens.
    G
        Workers, closed ones included.
    tops
        The heaviest loads of each step.
    w, total
        The worker and its sum, tokens.
    """
    first, worker, second, _, _ = _columns(tops)
    T = peak.shape[1]
    area = 0
    for h in range(T):
        others = second[h] if worker[h] == w else first[h]
        area += max(others, peak[w, h] + total)
    return G * area - T * total


@kernel
def cost_of_two(peak: Ints, G: int, tops: Tops, w: int, total: int, u: int, other: int) -> int:
    """Return G * sum_h max_h - T * (S_w + S_u) with the others as noted in tops.

    Parameters
    ----------
    peak
        (W, T) int64, loads without sizes, tokens.
    G
        Workers, closed ones included.
    tops
        The heaviest loads of each step.
    w, total, u, other
        The two workers and their sums, tokens.
    """
    first, worker, second, second_worker, third = _columns(tops)
    T = peak.shape[1]
    area = 0
    for h in range(T):
        if worker[h] != w and worker[h] != u:
            others = first[h]
        elif second_worker[h] != w and second_worker[h] != u:
            others = second[h]
        else:
            others = third[h]
        area += max(others, max(peak[w, h] + total, peak[u, h] + other))
    return G * area - T * (total + other)


@kernel
def ideal_total(peak: Ints, G: int, tops: Tops, w: int, gaps: Ints) -> int:
    """Return the S_w of least cost, with the others as noted in tops.

    Parameters
    ----------
    peak
        (W, T) int64, loads without sizes, tokens.
    G
        Workers, closed ones included.
    tops
        The heaviest loads of each step.
    w
        The worker.
    gaps
        (T,) int64, scratch.
    """
    first, worker, second, _, _ = _columns(tops)
    T = peak.shape[1]
    for h in range(T):
        others = second[h] if worker[h] == w else first[h]
        gap = max(others, -_INFINITY) - peak[w, h]
        at = h
        while at > 0 and gaps[at - 1] > gap:
            gaps[at] = gaps[at - 1]
            at -= 1
        gaps[at] = gap
    return gaps[min(T, (T + G - 1) // G) - 1]


@kernel
def polish(
    pool: Pool, profile: Profile, slots: Ints, draft: Draft, rounds: int, scratch: Scratch, progress: Record
) -> int:
    """Improve draft.pattern (its requests taken from draft.left, its sums in draft.placed); return its cost.

    Parameters
    ----------
    pool, profile, slots
        The decision.
    draft
        Its pattern, left, placed and tops are changed in place.
    rounds
        Rounds at most; it ends after one that changes nothing, or where no time is left.
    scratch
        Overwritten.
    progress
        The deadline, PROGRESS.
    """
    G = profile.workers
    cost = cost_of(profile, draft.placed)
    for _ in range(rounds):
        before = cost
        cost += _single_workers(pool, profile, slots, G, draft, scratch, progress)
        cost += _exchanges(pool.v, profile, slots, G, draft, progress)
        if cost == before:
            break
    return cost


@kernel
def _single_workers(
    pool: Pool, profile: Profile, slots: Ints, G: int, draft: Draft, scratch: Scratch, progress: Record
) -> int:
    """Reopen one slot, or two, of each worker; return the change of the cost.

    Parameters
    ----------
    pool, profile, slots
        The decision.
    G
        Workers, closed ones included.
    draft
        Its pattern, left, placed and tops are changed in place.
    scratch
        Overwritten.
    progress
        The deadline, PROGRESS.
    """
    v, peak = pool.v, profile.peak
    left, pattern, placed, tops = draft.left, draft.pattern, draft.placed, draft.tops
    below, above, gaps = scratch.below, scratch.above, scratch.gaps
    change = 0
    stale = True
    for w in range(slots.size):
        if out_of_time(progress):
            break
        c = slots[w]
        if stale:
            note_tops(profile, placed, tops)
            stale = False
        now = cost_alone(peak, G, tops, w, placed[w])
        ideal = ideal_total(peak, G, tops, w, gaps)
        for a in range(min(c, 2 * _LOOKED_AT)):
            if c > 1 and a == c - 1:
                break
            for b in range(a + 1, c if c > 1 else a + 2):
                if b > a + 3:
                    break  # of many slots, near ones do
                k, j = pattern[w, a], (pattern[w, b] if c > 1 else -1)
                left[k] += 1
                others = placed[w] - v[k]
                if j >= 0:
                    left[j] += 1
                    others -= v[j]
                n = 2 if j >= 0 else 1
                nearest(v, left, n, ideal - others, below, above)
                best, chosen = now, below
                for side in range(2):
                    tried = below if side == 0 else above
                    if tried[0] >= 0:
                        cost = cost_alone(peak, G, tops, w, others + total_of(v, tried, n))
                        if cost < best and _may_leave(pool, left, k, j, tried[0], tried[1], n):
                            best, chosen = cost, tried
                if best < now:
                    k = chosen[0]
                    pattern[w, a] = k
                    if n == 2:
                        j = chosen[1]
                        pattern[w, b] = j
                    placed[w] = others + total_of(v, chosen, n)
                    change += best - now
                    now = best
                    stale = True
                left[k] -= 1
                if n == 2:
                    left[j] -= 1
    return change


@kernel
def _may_leave(pool: Pool, left: Ints, k: int, j: int, new: int, other: int, n: int) -> bool:
    """Return whether enough requests that must be admitted stay when classes k, j (now in left) give way to others.

    Parameters
    ----------
    pool
        The waiting requests.
    left
        (K,) int64, requests that are not placed.
    k, j, new, other, n
        The classes that go, -1 for none, and those that come; `other` counts where n is 2.
    """
    for old in (k, j):
        if old >= 0:
            taken = 1 if old == new else 0
            if n == 2 and old == other:
                taken += 1
            if left[old] - taken > pool.n[old] - pool.must[old]:
                return False
    return True


@kernel
def _exchanges(v: Ints, profile: Profile, slots: Ints, G: int, draft: Draft, progress: Record) -> int:
    """Exchange single requests between two workers; return the change of the cost.

    Parameters
    ----------
    v
        (K,) int64, sizes, tokens.
    profile, slots
        The decision.
    G
        Workers, closed ones included.
    draft
        Its pattern, placed and tops are changed in place.
    progress
        The deadline, PROGRESS.
    """
    peak, pattern, placed, tops = profile.peak, draft.pattern, draft.placed, draft.tops
    W = slots.size
    change = 0
    note_tops(profile, placed, tops)
    for w in range(W):
        if out_of_time(progress):
            break
        for u in range(w + 1, W):
            now = cost_of_two(peak, G, tops, w, placed[w], u, placed[u])
            best, at, to = now, -1, -1
            for a in range(min(slots[w], _LOOKED_AT)):
                for b in range(min(slots[u], _LOOKED_AT)):
                    gain = v[pattern[u, b]] - v[pattern[w, a]]
                    if gain != 0:
                        cost = cost_of_two(peak, G, tops, w, placed[w] + gain, u, placed[u] - gain)
                        if cost < best:
                            best, at, to = cost, a, b
            if at >= 0:
                gain = v[pattern[u, to]] - v[pattern[w, at]]
                pattern[w, at], pattern[u, to] = pattern[u, to], pattern[w, at]
                placed[w] += gain
                placed[u] -= gain
                change += best - now
                note_tops(profile, placed, tops)
    return change
