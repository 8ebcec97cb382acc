"""Whether a worker can fill its slots with a profit above a limit: exact, by depth-first search.

A set of requests is written with its classes descending, so that every set has one place in the tree. The last two
requests are found at once: for each class the partner of most profit below it is looked up in prefix maxima.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

#: Stands for "no set fits"; below every profit, and far enough from the end of the integers to be added to.
NOTHING = -(1 << 61)


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
def best_pair(v: Ints, n: Ints, profit: Ints, top: Ints, room: int, last: int, taken: int) -> int:
    """Return the most profit of two requests of classes up to `last`, of which `taken` copies are gone.

    Parameters
    ----------
    v, n, profit, top
        int64 (K,): sizes, ascending; copies; profits; the class of most profit up to each class.
    room, last, taken
        Tokens; the largest class allowed; copies of it that are used.
    """
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
def exceeds(
    v: Ints,
    n: Ints,
    profit: Ints,
    top: Ints,
    lightest: Ints,
    caps: Ints,
    dues: Ints,
    scale: int,
    slots: int,
    room: int,
    known: int,
    path: Ints,
    steps: Ints,
) -> int:
    """Return the most profit of `slots` requests in `room` if it is above `known`, else `known`.

    Where `steps` ends, what is returned is a number above the most profit all the same: that of a relaxation.

    Parameters
    ----------
    v, n, profit, top
        As in `best_pair`.
    lightest, caps, dues
        int64 (Q + 1,): of so many requests, the least total size, the largest total profit, the least total price.
    scale, slots, room, known
        Units of profit in a token; requests; tokens; a profit.
    path
        int64 (3, Q + 1), scratch: class, room left and profit at each depth.
    steps
        int64 (1,): steps that are left, which falls.
    """
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
            pair = best_pair(v, n, profit, top, rooms[depth], end, same)
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
