"""What is left of a worker's list at a node."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.leximax.state import INFINITY, Choice, Lists


@kernel
def filtered(
    lists: Lists, choice: Choice, w: int, first: int, last: int, at: int, fresh: bool, lo: int, hi: int
) -> tuple[int, int, int]:
    """Copy what is left of a worker's list to `at`; return its end, and the least and largest load in it.

    Parameters
    ----------
    lists, choice
        Lists of patterns, and the state of the search, whose stack and least losses change in place.
    w, first, last, at
        Worker; its part of the stack; where the copy begins.
    fresh
        Whether the requests of a pattern may have been taken since the last filtering.
    lo, hi
        Least and largest load, tokens.
    """
    live, least, loss, avail = choice.live, choice.least[w], lists.loss, choice.avail
    spare = choice.spare
    prices, c = lists.profit.shape[0], lists.slots[w]
    low, high = INFINITY, -INFINITY
    begin = at
    for r in range(first, last):
        j = live[r]
        size = lists.load[j]
        if size > hi or size < lo:
            continue
        good = True
        for i in range(prices):
            good = good and loss[j, i] <= spare[i] + least[i]
        if good and (not fresh or _free(lists.items[j], c, avail)):
            live[at] = j
            at += 1
            low, high = min(low, size), max(high, size)
    choice.state.steps += last - first + 1
    for i in range(prices):
        cheapest = INFINITY
        for r in range(begin, at):
            cheapest = min(cheapest, loss[live[r], i])
        least[i] = cheapest
    return at, low, high


@kernel
def _free(pattern: Ints, c: int, avail: Ints) -> bool:
    """Whether the requests of a pattern are all left."""
    for q in range(c):
        k = pattern[q]
        if avail[k] < c:
            same = 0
            for r in range(c):
                if pattern[r] == k:
                    same += 1
            if same > avail[k]:
                return False
    return True
