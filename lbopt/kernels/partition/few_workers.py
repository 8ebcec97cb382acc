"""Few requests on few workers, by enumeration: whether all loads can stay at or below a target.

Sequential number partitioning (Schreiber, Korf and Moffitt 2018, "Optimal multi-way number partitioning", section 5):
worker after worker is filled with every subset of what is left whose sum lies in the window

    (what is left) - (room of the other workers) <= sum <= (its own room),

which is narrow where the target is close to the mean; the subsets of a window are met in the middle (Horowitz and Sahni
1974). For the last two, one such subset is all. Of twins (same room, same slots) the first takes the largest request
left. Requests are bits of a mask, the largest is bit 0.

A target refuted is a bound proved. The caller doubles the distance of the target from the bound until something is
found, and then asks for less and less, so the windows of the last, complete enumeration are as narrow as can be.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time

MOST_REQUESTS = 44  # two lists of 2^22 subsets, written twice, are 0.25 GB
MOST_WORKERS = 8

FOUND, NONE, OPEN = 1, 0, -1

#: Steps taken and steps allowed, one record; `deadline` and `expired`, see `lbopt.kernels.deadline`.
BUDGET = integers("work", "limit", "deadline", "expired")


#: Subsets of one half between two looks at the clock.
_LOOK = 64


@kernel
def fits(size: Ints, lack: Ints, slots: Ints, budget: Record, masks: Ints) -> int:
    """Tell whether requests of `size` (n,), largest first, fit workers with room `lack` (J,) and `slots` (J,).

    Twins have to stand side by side. Returns FOUND, with the mask of each worker in `masks` (J,), or NONE, or OPEN
    when budget.work exceeds budget.limit or the deadline passes. n <= 62; all sums below 2^61.
    """
    J, n = lack.size, size.size
    total = 0
    for p in range(n):
        total += size[p]
    room = np.zeros(J + 1, np.int64)  # of worker j and those after it
    places = np.zeros(J + 1, np.int64)
    for j in range(J - 1, -1, -1):
        room[j] = room[j + 1] + lack[j]
        places[j] = places[j + 1] + slots[j]
        if lack[j] < 0:
            return NONE
    if total > room[0] or n > places[0]:
        return NONE
    every = (1 << n) - 1
    if J == 1:
        masks[0] = every
        return FOUND
    # one level for each worker but the last: the subsets found for it, and how far they have been tried
    offered = [np.zeros(0, np.int64) for _ in range(J)]
    tried = np.zeros(J, np.int64)
    left = np.zeros(J, np.int64)
    left[0] = every
    offered[0] = _windows(size, left[0], 0, lack, slots, room, places, budget)
    j = 0
    while j >= 0:
        if budget.work > budget.limit or out_of_time(budget):
            return OPEN
        if tried[j] == offered[j].size:
            j -= 1
            continue
        masks[j] = offered[j][tried[j]]
        tried[j] += 1
        rest = left[j] & ~masks[j]
        if j == J - 2:  # the window of the last but one is that of the last as well
            masks[j + 1] = rest
            return FOUND
        j += 1
        left[j] = rest
        tried[j] = 0
        offered[j] = _windows(size, rest, j, lack, slots, room, places, budget)
    return NONE


@kernel
def _windows(size: Ints, left: int, j: int, lack: Ints, slots: Ints, room: Ints, places: Ints, budget: Record) -> Ints:
    """List the subsets of `left` that worker j can take so that what remains has room on the workers after it."""
    n = 0
    total = 0
    position = np.empty(size.size, np.int64)
    for p in range(size.size):
        if left >> p & 1:
            position[n] = p
            total += size[p]
            n += 1
    low, high = total - room[j + 1], lack[j]
    fewest, most = n - places[j + 1], slots[j]
    # of twins, the first takes the largest request left; all after j must be twins for that
    fixed = 0
    twins = n > 0
    for k in range(j + 1, lack.size):
        twins = twins and lack[k] == lack[j] and slots[k] == slots[j]
    if twins:
        fixed = 1 << position[0]
        low -= size[position[0]]
        high -= size[position[0]]
        fewest, most = fewest - 1, most - 1
        position[: n - 1] = position[1:n].copy()
        n -= 1
    half = n // 2
    sums, masks = _subsets(size, position[:half])
    other_sums, other_masks = _subsets(size, position[half:n])
    budget.work += sums.size + other_sums.size
    found = np.empty(16, np.int64)
    count = 0
    begin = other_sums.size  # other_sums[begin:] are at least low - sums[i]
    end = other_sums.size  # other_sums[:end] are at most high - sums[i]
    for i in range(sums.size):
        while begin > 0 and other_sums[begin - 1] >= low - sums[i]:
            begin -= 1
        while end > 0 and other_sums[end - 1] > high - sums[i]:
            end -= 1
        for k in range(begin, end):
            mask = masks[i] | other_masks[k]
            taken = _members(mask)
            if fewest <= taken <= most:
                if count == found.size:
                    grown = np.empty(2 * count, np.int64)
                    grown[:count] = found
                    found = grown
                found[count] = mask | fixed
                count += 1
        budget.work += 1 + max(0, end - begin)
        if budget.work > budget.limit or (i % _LOOK == 0 and out_of_time(budget)):
            break
    return found[:count]


@kernel
def _subsets(size: Ints, position: Ints) -> tuple[Ints, Ints]:
    """Return the sums of all subsets of these positions, ascending, and their masks."""
    sums = np.zeros(1 << position.size, np.int64)
    masks = np.zeros(1 << position.size, np.int64)
    old_sums = np.zeros(1 << position.size, np.int64)
    old_masks = np.zeros(1 << position.size, np.int64)
    count = 1
    for p in position:
        old_sums[:count] = sums[:count]
        old_masks[:count] = masks[:count]
        a = b = 0
        for at in range(2 * count):
            if b == count or (a < count and old_sums[a] <= old_sums[b] + size[p]):
                sums[at], masks[at] = old_sums[a], old_masks[a]
                a += 1
            else:
                sums[at], masks[at] = old_sums[b] + size[p], old_masks[b] | 1 << p
                b += 1
        count *= 2
    return sums, masks


@kernel
def _members(mask: int) -> int:
    """Count the bits."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count
