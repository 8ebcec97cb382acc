"""Which requests a worker takes before the exact search for its last few: far ones first, then such as it needs.

What is still unplaced when few workers are left decides whether these can be balanced exactly, and that is likelier
the closer the sizes left lie together: the number of loads that are possible falls, the number of splits does not. So
a worker takes from one end of the sorted pool, as long as the other end can still make up for it; then each further
request is drawn near the mean of what it still lacks. Draws come from a zone, not from the very end, so that another
try finds other requests.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.draw import draw


@kernel
def locate(value: Ints, n: int, bound: int) -> int:
    """Count the entries below `bound` in the ascending array value[:n]."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if value[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def take_middle(
    value: Ints, n: int, lack: int, slots: int, keep: int, zone: int, dice: Ints, taken: Ints, picked: Ints
) -> int:
    """Pick slots - keep positions of the ascending pool value[:n] from both its ends; return what is lacked then.

    The end is chosen so that the mean of what it lacks stays in the middle of the pool. Positions with taken[p] != 0
    are left out; those picked are marked there (2) and listed in `picked`. At least `slots` positions must be free.

    Parameters
    ----------
    value, n
        (N,) int64, sizes of the pool, ascending in the first n, tokens.
    lack
        What the worker still lacks, tokens.
    slots, keep
        Its slots, and those that are left to another search.
    zone
        Positions from which one is drawn.
    dice
        (1,) int64, state of the draws; changed in place.
    taken, picked
        (N,) and (slots,) int64, marks and positions; written.
    """
    for k in range(slots - keep):
        upper = lack // (slots - k) >= value[n // 2]
        p = n - 1 - draw(dice, zone) if upper else draw(dice, zone)
        p = _free_from(taken, n, p, -1 if upper else 1)
        taken[p] = 2
        picked[k] = p
        lack -= value[p]
    return lack


@kernel
def take_far(
    value: Ints, n: int, lack: int, slots: int, keep: int, zone: int, dice: Ints, taken: Ints, picked: Ints
) -> int:
    """Pick as `take_middle` does, but from one end, as long as the other can make up for it; then near the mean lacked.

    So the last `keep` requests, too, are far from the middle of the pool.

    Parameters
    ----------
    value, n
        (N,) int64, sizes of the pool, ascending in the first n, tokens.
    lack
        What the worker still lacks, tokens.
    slots, keep
        Its slots, and those that are left to another search.
    zone
        Positions from which one is drawn.
    dice
        (1,) int64, state of the draws; changed in place.
    taken, picked
        (N,) and (slots,) int64, marks and positions; written.
    """
    upper = _side(value, n, dice)
    far = True
    opposite = value[min(n - 1, zone // 2)] if upper else value[max(0, n - 1 - zone // 2)]
    for k in range(slots - keep):
        others = slots - k - 1
        p = -1
        if far:
            step = draw(dice, zone) if k > 0 else 0  # the very end goes first, or it would stay for ever
            p = _free_from(taken, n, n - 1 - step if upper else step, -1 if upper else 1)
            mean = (lack - value[p]) // others if others > 0 else 0
            if others == 0 or (mean < opposite if upper else mean > opposite):
                far = False
        if not far:
            p = locate(value, n, lack // (others + 1)) + draw(dice, zone) - zone // 2
            p = _free_from(taken, n, min(max(p, 0), n - 1), 1)
        taken[p] = 2
        picked[k] = p
        lack -= value[p]
    return lack


@kernel
def take_outer(
    value: Ints,
    n: int,
    lack: int,
    slots: int,
    zone: int,
    dice: Ints,
    taken: Ints,
    picked: Ints,
    candidate: Ints,
    q: int,
) -> int:
    """Pick slots - q positions, and m candidates for the other q, from one end and from where that is made up for.

    Half of the slots, or as many as the other end can make up for, take requests from one end; the others take such
    as then are lacked: from the other end if `slots` is even, but for 2 + 3 requests, say, from a third of the way.
    The last position picked brings q candidates, q // 2 of them from the end, to what is lacked in the mean.
    `candidate` (m,) is written; else as `take_middle`.

    Parameters
    ----------
    value, n
        (N,) int64, sizes of the pool, ascending in the first n, tokens.
    lack
        What the worker still lacks, tokens.
    slots, q
        Its slots, and those that candidates are for.
    zone
        Positions from which one is drawn.
    dice
        (1,) int64, state of the draws; changed in place.
    taken, picked, candidate
        (N,), (slots,) and (m,) int64, marks and positions; written.
    """
    m = candidate.size
    upper = _side(value, n, dice)
    bottom, top = value[min(n - 1, zone // 2)], value[max(0, n - 1 - zone // 2)]
    end, other = (top, value[min(n - 1, zone // 8)]) if upper else (bottom, value[max(0, n - 1 - zone // 8)])
    at_end = slots // 2
    for k in range(slots - q - 1):
        at_end = _affordable(lack, slots - k, at_end, end, other, upper)
        p = -1
        if at_end > q // 2:
            step = draw(dice, zone) if k > 0 else 0  # the very end first, or it would stay for ever
            p = _free_from(taken, n, n - 1 - step if upper else step, -1 if upper else 1)
            at_end -= 1
        else:
            p = locate(value, n, (lack - at_end * end) // (slots - k - at_end)) + draw(dice, zone) - zone // 2
            p = _free_from(taken, n, min(max(p, 0), n - 1), 1)
        taken[p] = 2
        picked[k] = p
        lack -= value[p]

    at_end = min(_affordable(lack, min(slots, q + 1), at_end, end, other, upper), q // 2)
    half = m // 2 if at_end == q // 2 else 0
    p = n - 1 if upper else 0
    total = 0
    for j in range(half):
        p = _free_from(taken, n, p, -1 if upper else 1)
        candidate[j] = p
        taken[p] = 3
        total += value[p]
    of_end = q // 2 * (total // half) if half > 0 else 0
    of_rest = q - q // 2 if half > 0 else q
    p = locate(value, n, (lack - of_end) // min(slots - q // 2, of_rest + 1)) + draw(dice, zone) - zone // 2
    nearest(n, min(max(p, 0), n - 1), taken, candidate, half)
    if q < slots:
        total = 0
        for j in range(half, m):
            taken[candidate[j]] = 3
            total += value[candidate[j]]
        target = lack - of_end - of_rest * (total // (m - half))
        p = locate(value, n, target) + draw(dice, 16) - 8
        p = _free_from(taken, n, min(max(p, 0), n - 1), 1)
        taken[p] = 2
        picked[slots - q - 1] = p
        lack -= value[p]
    return lack


@kernel
def _side(value: Ints, n: int, dice: Ints) -> int:
    """1 for the upper end, 0 for the lower one: mostly that which is farther from the middle."""
    if draw(dice, 4) == 0:
        return draw(dice, 2)
    return 1 if value[n - 1] - value[n // 2] >= value[n // 2] - value[0] else 0


@kernel
def farthest(value: Ints, n: int, rank: int) -> int:
    """Position in the ascending pool value[:n] of the number farthest from the mean, or next to it, and so on."""
    mean = 0.0
    for p in range(n):
        mean += value[p]
    mean /= n
    low, high = 0, n - 1
    while rank > 0 and low < high:
        if value[high] - mean >= mean - value[low]:
            high -= 1
        else:
            low += 1
        rank -= 1
    return high if value[high] - mean >= mean - value[low] else low


@kernel
def _affordable(lack: int, slots: int, at_end: int, end: int, other: int, upper: int) -> int:
    """How many of `slots`, at most `at_end`, can take `end` so that the mean of the others is not beyond `other`.

    Parameters
    ----------
    lack
        What the worker still lacks, tokens.
    slots, at_end
        Its slots, and how many of them may take `end`.
    end, other, upper
        Sizes at this end and at the other, tokens; 1 where this is the upper end.
    """
    while at_end > 0:
        mean = (lack - at_end * end) // (slots - at_end)
        if mean >= other if upper else mean <= other:
            break
        at_end -= 1
    return at_end


@kernel
def nearest(n: int, p: int, taken: Ints, near: Ints, begin: int) -> None:
    """Write the free positions round p to near[begin:]; so many must be free.

    Parameters
    ----------
    n, p
        Positions of the pool, and the one in the middle.
    taken
        (N,) int64, not 0 where a position is not free.
    near, begin
        (m,) int64, written from `begin` on.
    """
    left, right = p - 1, p
    for j in range(begin, near.size):
        while left >= 0 and taken[left]:
            left -= 1
        while right < n and taken[right]:
            right += 1
        if right >= n or (left >= 0 and p - left <= right - p):
            near[j] = left
            left -= 1
        else:
            near[j] = right
            right += 1


@kernel
def _free_from(taken: Ints, n: int, p: int, step: int) -> int:
    """Find the first free position from p on in direction `step`, else in the other one.

    Parameters
    ----------
    taken
        (N,) int64, not 0 where a position is not free.
    n, p, step
        Positions of the pool, the first one to look at, and 1 or -1.
    """
    at = p
    while 0 <= at < n and taken[at]:
        at += step
    if 0 <= at < n:
        return at
    at = p
    while 0 <= at < n and taken[at]:
        at -= step
    return at
