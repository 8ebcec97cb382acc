"""Even out an assignment: requests change places between two workers as long as the heavier of them gets lighter.

One request of the heavier worker goes for a smaller one of the lighter, or two for two. Of all exchanges of the
heaviest worker that has any, the one is made that leaves the heavier of the two lightest; so the loads, sorted from the
largest down, fall lexicographically with every step. Which requests are admitted does not change.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.leximax.sorting import sort_alone, sort_up

#: Pairs are exchanged for pairs between workers of no more slots than this.
MOST_PAIRED = 6


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
    move = (0, 0, -1, -1)
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
            if slots[a] <= MOST_PAIRED and slots[b] <= MOST_PAIRED:
                high, found = _double(v, held[a, : slots[a]], held[b, : slots[b]], after[a], after[b], high, found)
                steps += slots[a] * slots[a] * slots[b] * slots[b] // 4
            if high < best:
                best, partner, move = high, b, found
        if partner < 0:
            i += 1
            continue
        b = partner
        d = 0
        for x, y in ((move[0], move[1]), (move[2], move[3])):
            if x >= 0:
                d += v[held[a, x]] - v[held[b, y]]
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
def _single(v: Ints, mine: Ints, theirs: Ints, high: int, low: int, best: int) -> tuple[int, tuple[int, int, int, int]]:
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
    found = (-1, -1, -1, -1)
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
                best, found = larger, (x, y, -1, -1)
    return best, found


@kernel
def _double(
    v: Ints, mine: Ints, theirs: Ints, high: int, low: int, best: int, found: tuple[int, int, int, int]
) -> tuple[int, tuple[int, int, int, int]]:
    """Return the same for two requests at once.

    Parameters
    ----------
    v
        int64 (K,): sizes, tokens.
    mine, theirs
        int64 (c,): classes of the heavier and of the lighter worker, ascending.
    high, low, best
        Their loads; load to be undercut, tokens.
    found
        The exchange that leaves `best`.
    """
    for x in range(mine.size):
        for x2 in range(x):
            give = v[mine[x]] + v[mine[x2]]
            for y in range(theirs.size):
                for y2 in range(y):
                    d = give - v[theirs[y]] - v[theirs[y2]]
                    larger = max(high - d, low + d)
                    if d > 0 and larger < best:
                        best, found = larger, (x, y, x2, y2)
    return best, found
