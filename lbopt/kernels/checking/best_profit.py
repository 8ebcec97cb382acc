"""Whether a worker can fill its slots with a profit above a limit: exact, by depth-first search.

A set of requests is written with its classes descending, so that every set has one place in the tree. The last two
requests are found at once: for each class the partner of most profit below it is looked up in prefix maxima.
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel

#: Stands for "no set fits"; below every profit, and far enough from the end of the integers to be added to.
NOTHING = -(1 << 61)


@by_reference
class Priced(NamedTuple):
    """Classes under prices, and what follows from both."""

    v: Ints  # (K,) sizes, ascending
    n: Ints  # (K,) requests
    forced: Ints  # (K,) 1 for those that must be admitted
    profit: Ints  # (K,) of one request
    top: Ints  # (K,) class of most profit up to each class
    lightest: Ints  # (Q + 1,) least totals of 0, 1, 2, ... sizes
    caps: Ints  # (Q + 1,) largest totals of profits
    dues: Ints  # (Q + 1,) least totals of prices
    path: Ints  # (3, Q + 1) scratch
    steps: Ints  # (1,) steps that are left
    scale: int  # units of a price in a token


@kernel
def last_within(v: Ints, room: int) -> int:
    """Return the last class of size at most `room`, -1 for none; v ascends."""
    low, high = 0, v.size
    while low < high:
        middle = (low + high) // 2
        if v[middle] <= room:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel
def best_pair(c: Priced, room: int, last: int, taken: int) -> int:
    """Return the most profit of two requests of classes up to `last`, of which `taken` copies are gone."""
    v, n, profit, top = c.v, c.n, c.profit, c.top
    best = NOTHING
    second = min(last_within(v, room - v[0]), last)
    partner = -1
    for k in range(second, -1, -1):  # the room for the partner grows as k falls
        left = n[k] - (taken if k == last else 0)
        if left <= 0:
            continue
        while partner + 1 < v.size and v[partner + 1] <= room - v[k]:
            partner += 1
        j = min(partner, k if left >= 2 else k - 1)
        if j >= 0:
            best = max(best, profit[k] + profit[top[j]])
    return best


@kernel
def exceeds(c: Priced, slots: int, room: int, known: int) -> int:
    """Return the most profit of `slots` requests in `room` if it is above `known`, else `known`.

    Where `steps` ends, what is returned is a number above the most profit all the same: that of a relaxation.
    """
    v, n, profit, top, lightest, caps, dues = c.v, c.n, c.profit, c.top, c.lightest, c.caps, c.dues
    scale, steps, path = c.scale, c.steps, c.path
    kind, rooms, value = path[0], path[1], path[2]
    if slots == 1:
        k = last_within(v, room)
        return max(known, profit[top[k]]) if k >= 0 else known
    depth = 0
    kind[0] = last_within(v, room - lightest[slots - 1])
    rooms[0], value[0] = room, 0
    best = known
    while depth >= 0:
        steps[0] -= 1
        if steps[0] < 0:
            return max(best, min(caps[slots], scale * room - dues[slots]))
        rest = slots - depth
        if rest == 2:
            end = kind[depth]
            same = 0
            for d in range(depth):
                same += kind[d] == end
            pair = best_pair(c, rooms[depth], end, same)
            steps[0] -= end // 16
            if pair > NOTHING:
                best = max(best, value[depth] + pair)
            depth -= 1
            if depth >= 0:
                kind[depth] -= 1
            continue
        k = kind[depth]
        if k < 0:
            depth -= 1
            if depth >= 0:
                kind[depth] -= 1
            continue
        taken = 0
        for d in range(depth):
            taken += kind[d] == k
        most = value[depth] + min(rest * profit[top[k]], min(caps[rest], scale * rooms[depth] - dues[rest]))
        if most <= best:  # smaller classes have no more
            depth -= 1
            if depth >= 0:
                kind[depth] -= 1
            continue
        left = rooms[depth] - v[k]
        with_it = value[depth] + profit[k]
        hope = with_it + min(caps[rest - 1], scale * left - dues[rest - 1])
        if taken >= n[k] or left < lightest[rest - 1] or hope <= best:
            kind[depth] -= 1
            continue
        rooms[depth + 1], value[depth + 1] = left, with_it
        kind[depth + 1] = min(k, last_within(v, left - lightest[rest - 2]))
        depth += 1
    return best
