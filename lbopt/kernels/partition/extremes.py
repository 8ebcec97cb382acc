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
from lbopt.kernels.partition.state import Taking


@kernel
def locate(value: Ints, bound: int) -> int:
    """Count the entries below `bound` in an ascending array."""
    low, high = 0, value.size
    while low < high:
        middle = (low + high) // 2
        if value[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _pick(t: Taking, k: int, p: int, step: int) -> int:
    """Pick the free position nearest to p in direction `step` as the k-th; return its size."""
    p = _free_from(t.taken, t.value.size, p, step)
    t.taken[p] = 2
    t.picked[k] = p
    return t.value[p]


@kernel
def take_middle(t: Taking, lack: int, slots: int, keep: int, zone: int) -> int:
    """Pick slots - keep positions of the pool from both its ends; return what is lacked then.

    The end is chosen so that the mean of what is lacked stays in the middle of the pool. Positions picked are marked
    (2). At least `slots` positions must be free.
    """
    n = t.value.size
    for k in range(slots - keep):
        upper = lack // (slots - k) >= t.value[n // 2]
        p = n - 1 - draw(t.dice, zone) if upper else draw(t.dice, zone)
        lack -= _pick(t, k, p, -1 if upper else 1)
    return lack


@kernel
def take_far(t: Taking, lack: int, slots: int, keep: int, zone: int) -> int:
    """Pick as `take_middle` does, but from one end, as long as the other can make up for it; then near the mean lacked.

    So the last `keep` requests, too, are far from the middle of the pool.
    """
    value, n = t.value, t.value.size
    upper = _side(value, t.dice)
    far = True
    opposite = value[min(n - 1, zone // 2)] if upper else value[max(0, n - 1 - zone // 2)]
    for k in range(slots - keep):
        others = slots - k - 1
        p, step = -1, 1
        if far:
            p = draw(t.dice, zone) if k > 0 else 0  # the very end goes first, or it would stay for ever
            p, step = (n - 1 - p, -1) if upper else (p, 1)
            p = _free_from(t.taken, n, p, step)
            mean = (lack - value[p]) // others if others > 0 else 0
            if others == 0 or (mean < opposite if upper else mean > opposite):
                far = False
        if not far:
            p = locate(value, lack // (others + 1)) + draw(t.dice, zone) - zone // 2
            p, step = min(max(p, 0), n - 1), 1
        lack -= _pick(t, k, p, step)
    return lack


@kernel
def take_outer(t: Taking, lack: int, slots: int, zone: int, candidate: Ints, q: int) -> int:
    """Pick slots - q positions, and m candidates for the other q, from one end and from where that is made up for.

    Half of the slots, or as many as the other end can make up for, take requests from one end; the others take such
    as then are lacked: from the other end if `slots` is even, but for 2 + 3 requests, say, from a third of the way.
    The last position picked brings q candidates, q // 2 of them from the end, to what is lacked in the mean.
    `candidate` (m,) is written; else as `take_middle`.
    """
    m, value, n, taken, dice = candidate.size, t.value, t.value.size, t.taken, t.dice
    upper = _side(value, dice)
    bottom, top = value[min(n - 1, zone // 2)], value[max(0, n - 1 - zone // 2)]
    end, other = (top, value[min(n - 1, zone // 8)]) if upper else (bottom, value[max(0, n - 1 - zone // 8)])
    at_end = slots // 2
    for k in range(slots - q - 1):
        at_end = _affordable(lack, slots - k, at_end, end, other, upper)
        if at_end > q // 2:
            step = draw(dice, zone) if k > 0 else 0  # the very end first, or it would stay for ever
            lack -= _pick(t, k, n - 1 - step if upper else step, -1 if upper else 1)
            at_end -= 1
        else:
            p = locate(value, (lack - at_end * end) // (slots - k - at_end)) + draw(dice, zone) - zone // 2
            lack -= _pick(t, k, min(max(p, 0), n - 1), 1)

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
    p = locate(value, (lack - of_end) // min(slots - q // 2, of_rest + 1)) + draw(dice, zone) - zone // 2
    nearest(min(max(p, 0), n - 1), taken, candidate, half)
    if q < slots:
        total = 0
        for j in range(half, m):
            taken[candidate[j]] = 3
            total += value[candidate[j]]
        target = lack - of_end - of_rest * (total // (m - half))
        p = locate(value, target) + draw(dice, 16) - 8
        lack -= _pick(t, slots - q - 1, min(max(p, 0), n - 1), 1)
    return lack


@kernel
def _side(value: Ints, dice: Ints) -> int:
    """1 for the upper end, 0 for the lower one: mostly that which is farther from the middle."""
    if draw(dice, 4) == 0:
        return draw(dice, 2)
    middle = value[value.size // 2]
    return 1 if value[-1] - middle >= middle - value[0] else 0


@kernel
def farthest(value: Ints, rank: int) -> int:
    """Position in the ascending pool of the number farthest from the mean, or next to it, and so on."""
    mean = value.mean()
    low, high = 0, value.size - 1
    while rank > 0 and low < high:
        if value[high] - mean >= mean - value[low]:
            high -= 1
        else:
            low += 1
        rank -= 1
    return high if value[high] - mean >= mean - value[low] else low


@kernel
def _affordable(lack: int, slots: int, at_end: int, end: int, other: int, upper: int) -> int:
    """How many of `slots`, at most `at_end`, can take `end` so that the mean of the others is not beyond `other`."""
    while at_end > 0:
        mean = (lack - at_end * end) // (slots - at_end)
        if mean >= other if upper else mean <= other:
            break
        at_end -= 1
    return at_end


@kernel
def nearest(p: int, taken: Ints, near: Ints, begin: int) -> None:
    """Write the free positions round p to near[begin:]; so many must be free."""
    left, right, n = p - 1, p, taken.size
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
    """Find the first free position from p on in direction `step`, else in the other one."""
    at = p
    while 0 <= at < n and taken[at]:
        at += step
    if 0 <= at < n:
        return at
    at = p
    while 0 <= at < n and taken[at]:
        at -= step
    return at
