"""Fillings of one worker: sets of exactly c requests of a pool whose sum lies in a window just below its target.

Where all of them can be listed, all are; then only the request farthest from the mean is fixed, if the workers left are
twins (same room, same slots: that request lies on one of them, no matter which). Where too many subsets are to be
listed, all but q requests are drawn from the ends of the pool, and the last q searched for as `plan` says; another
call draws others. A filling's merit is the sum of squares, about `middle`, that it takes away from the pool.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.draw import draw
from lbopt.kernels.partition.extremes import locate, nearest, take_middle, take_outer
from lbopt.kernels.partition.plan import (
    LARGEST_WHOLE,
    MOST_ENTRIES,
    RICH,
    choose_search,
    expected_hits,
    grown_entries,
    list_entries,
)
from lbopt.kernels.partition.state import Lists, Taking
from lbopt.kernels.partition.subset_sums import find_subsets

ALL = 0  # every filling was looked for
SOME = 1  # many were expected
FEW_ENTRIES = 1 << 12  # up to which even the most uneven subsets are listed
RARE = 2  # few were expected, and not all could be looked for: another call may find others


@kernel
def all_fillings(
    lists: Lists, value: Ints, slots: int, lack: int, slack: int, fixed: int, thorough: int, middle: float
) -> tuple[int, int, int]:
    """Write fillings as rows of positions into lists.picks, and their merits; return (how many, ALL or RARE, work).

    None, and RARE, if there are too many subsets to list. `value` (n,) ascending, n >= slots >= 1; a filling's sum is
    at most `lack`, and at least lack - `slack`. If `fixed` is not negative, all go through that position. If not
    `thorough`, only a part is looked for, which is cheaper for each filling that is found.
    """
    n = value.size
    m = n - 1 if fixed >= 0 else n
    q = slots - (n - m)
    rest = lack - (value[fixed] if fixed >= 0 else 0)
    candidate = np.empty(m, np.int64)
    number = np.empty(m, np.int64)
    merit = np.empty(m, np.float64)
    for j in range(m):
        candidate[j] = j if j < fixed or fixed < 0 else j + 1
    _shuffle(candidate, lists.dice)
    _look_up(value, candidate, middle, number, merit)
    expected = expected_hits(number, m, q, rest, rest)
    whole = 1 if q <= (LARGEST_WHOLE if thorough else 3) and list_entries(m, q, 1, 0) <= MOST_ENTRIES else 0
    spread = 0
    if thorough and list_entries(m, q, 0, 1) <= MOST_ENTRIES:
        spread = 3 if list_entries(m, q, 0, 3) <= FEW_ENTRIES else 1
    if thorough and not whole and expected > RICH:
        return 0, RARE, n
    if list_entries(m, q, whole, spread) > MOST_ENTRIES or grown_entries(m, q, whole, spread) > lists.total.size:
        return 0, RARE, n
    short = _window(expected, slack)
    count, work = find_subsets(lists, number, merit, q, rest - short, rest, whole, spread)
    for h in range(count):
        for k in range(q):
            lists.picks[h, k] = candidate[lists.picks[h, k]]
        if fixed >= 0:
            lists.picks[h, q] = fixed
            lists.merits[h] += (value[fixed] - middle) ** 2
    return count, ALL, work + 8 * n


@kernel
def outer_fillings(
    lists: Lists, value: Ints, slots: int, lack: int, slack: int, outer_only: int, middle: float
) -> tuple[int, int, int]:
    """Fillings as above, through requests drawn from the ends of the pool; SOME or RARE in place of ALL."""
    n, dice = value.size, lists.dice
    q, m, outer, rich = choose_search(value, n, slots, outer_only)
    t = Taking(value, np.zeros(n, np.int64), np.empty(slots, np.int64), dice)
    candidate = np.empty(m, np.int64)
    zone = min(max(3, n // 16, slots - q), max(1, n // 2))
    if outer:
        rest = take_outer(t, lack, slots, zone, candidate, q)
    else:
        rest = take_middle(t, lack, slots, q, zone)
        nearest(locate(value, rest // q), t.taken, candidate, 0)
        _shuffle(candidate, dice)  # halves that are alike, and differ from call to call
    number = np.empty(m, np.int64)
    merit = np.empty(m, np.float64)
    _look_up(value, candidate, middle, number, merit)
    short = _window(expected_hits(number, m, q, rest, rest), slack)
    whole = 1 if q <= LARGEST_WHOLE else 0
    count, work = find_subsets(lists, number, merit, q, rest - short, rest, whole, 0)
    for h in range(count):
        for k in range(q):
            lists.picks[h, k] = candidate[lists.picks[h, k]]
        for k in range(slots - q):
            lists.picks[h, q + k] = t.picked[k]
            lists.merits[h] += (value[t.picked[k]] - middle) ** 2
    return count, SOME if rich else RARE, work + 8 * n


@kernel
def _shuffle(candidate: Ints, dice: Ints) -> None:
    for j in range(candidate.size - 1, 0, -1):
        k = draw(dice, j + 1)
        candidate[j], candidate[k] = candidate[k], candidate[j]


@kernel
def _look_up(value: Ints, candidate: Ints, middle: float, number: Ints, merit: Floats) -> None:
    """Set sizes and merits of the candidates."""
    for j in range(candidate.size):
        number[j] = value[candidate[j]]
        merit[j] = (number[j] - middle) ** 2


@kernel
def _window(expected: float, slack: int) -> int:
    """By how much a sum may fall short of the target, so that some RICH hits are expected."""
    if expected * (slack + 1.0) <= RICH:
        return slack
    return int(RICH / expected)
