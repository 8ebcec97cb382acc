"""The most even loads that boxes and a fixed sum allow, and exchanges that even an assignment out.

Loads x_w with lo_w <= x_w <= hi_w and a given sum are most even, and least when sorted from the largest down, where
water stands at one level between the boxes: x_w = clip(level, lo_w, hi_w), one less for some where the sum does not
come out (the integer points of such a set have a least element in the majorisation order: Marshall, Olkin and Arnold,
Inequalities, chapter 5). Whatever assignments there are, none has lesser sorted loads.

Exchanges: one request of the heavier worker goes for a smaller one of the lighter. Of all exchanges of the heaviest
worker that has any, the one is made that leaves the heavier of the two lightest; so the loads, sorted from
the largest down, fall lexicographically with every step. Which requests are admitted does not change.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed


@kernel
def sort_up(values: Ints, companion: Ints) -> None:
    """Sort `values` in place, ascending; `companion`, of the same length, follows."""
    gap = 1
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            value, other = values[i], companion[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j], companion[j] = values[j - gap], companion[j - gap]
                j -= gap
            values[j], companion[j] = value, other
        gap //= 3


@kernel
def sort_alone(values: Ints) -> None:
    """Sort `values` in place, ascending."""
    gap = 1
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@kernel
def water(lo: Ints, hi: Ints, total: int, out: Ints) -> bool:
    """Fill out[:] with the most even loads in lo..hi of sum `total`; False where there are none.

    Parameters
    ----------
    lo, hi
        int64 (W,): least and largest load, tokens.
    total
        Sum of the loads, tokens.
    out
        int64 (W,), written; not `lo` or `hi`.
    """
    low, high, least, most = 1 << 62, -(1 << 62), 0, 0
    for w in range(lo.size):
        if lo[w] > hi[w]:
            return False
        low, high = min(low, lo[w]), max(high, hi[w])
        least += lo[w]
        most += hi[w]
    if not least <= total <= most:
        return False
    while low < high:  # the least level that holds as much
        middle = (low + high) >> 1
        held = 0
        for w in range(lo.size):
            held += min(max(middle, lo[w]), hi[w])
        if held >= total:
            high = middle
        else:
            low = middle + 1
    held = 0
    for w in range(lo.size):
        out[w] = min(max(low, lo[w]), hi[w])
        held += out[w]
    for w in range(lo.size):
        if held > total and out[w] == low and lo[w] < low:
            out[w] -= 1
            held -= 1
    return True


@kernel
def compared(ascending: Ints, best: Ints) -> int:
    """Compare loads, sorted upwards, with `best`, sorted downwards, the largest first: -1 less, 0 equal, 1 greater."""
    size = best.size
    for j in range(size):
        d = ascending[size - 1 - j] - best[j]
        if d != 0:
            return -1 if d < 0 else 1
    return 0


@kernel
def even_out(v: Ints, slots: Ints, held: Ints, after: Ints, limit: int, deadline: int) -> int:
    """Exchange requests in place until nothing is gained or about `limit` steps are made; return the steps.

    Parameters
    ----------
    v, slots
        int64 (K,) and (W,): sizes, tokens, ascending; slots.
    held, after
        int64 (W, Q) and (W,), changed in place: classes of each worker, ascending; loads with them, tokens.
    limit, deadline
        Steps after which to stop; nanoseconds, see `lbopt.kernels.deadline`.
    """
    W = slots.size
    order = sorted_down(after)
    move = (0, 0)
    steps = i = 0
    while i < W and steps < limit and not passed(deadline):
        a = order[i]
        best, partner = after[a], -1
        for j in range(W - 1, i, -1):
            b = order[j]
            if after[a] - after[b] <= 1:
                break
            if (after[a] + after[b] + 1) // 2 >= best:
                continue
            high, found = _single(v, held[a, : slots[a]], held[b, : slots[b]], after[a], after[b], best)
            steps += 4 * slots[a]
            if high < best:
                best, partner, move = high, b, found
        if partner < 0:
            i += 1
            continue
        b = partner
        x, y = move
        d = v[held[a, x]] - v[held[b, y]]
        held[a, x], held[b, y] = held[b, y], held[a, x]
        after[a] -= d
        after[b] += d
        sort_alone(held[a, : slots[a]])
        sort_alone(held[b, : slots[b]])
        order = sorted_down(after)
        i = 0
    return steps


@kernel
def sorted_down(after: Ints) -> Ints:
    """Return the workers, heaviest first."""
    order = np.arange(after.size)
    sort_up(-after, order)
    return order


@kernel
def _single(v: Ints, mine: Ints, theirs: Ints, high: int, low: int, best: int) -> tuple[int, tuple[int, int]]:
    """Return the least larger load below `best` that one exchange leaves, and the exchange.

    Parameters
    ----------
    v
        int64 (K,): sizes, tokens.
    mine, theirs
        int64 (c,): classes of the heavier and of the lighter worker, ascending.
    high, low, best
        Their loads; load to be undercut, tokens.
    """
    found = (-1, -1)
    for x in range(mine.size):
        # the partner is wanted that is smaller by half the difference
        wanted = v[mine[x]] - (high - low) // 2
        first, last = 0, theirs.size
        while first < last:
            middle = (first + last) // 2
            if v[theirs[middle]] < wanted:
                first = middle + 1
            else:
                last = middle
        for y in range(max(0, first - 1), min(theirs.size, first + 1)):
            d = v[mine[x]] - v[theirs[y]]
            larger = max(high - d, low + d)
            if d > 0 and larger < best:
                best, found = larger, (x, y)
    return best, found
