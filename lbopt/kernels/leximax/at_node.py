"""Lists that are made at a node: of workers with too many patterns to be listed before anything is decided."""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.leximax.patterns import list_window
from lbopt.kernels.leximax.sorting import sort_up
from lbopt.kernels.leximax.state import AT_A_NODE, BRANCHES, Choice, Lists


@kernel
def list_here(lists: Lists, choice: Choice, depth: int, w: int, lo: int, hi: int, target: int) -> None:
    """List the patterns of a worker at a node, those next to the load `target` first.

    Where lo..hi holds too many, a smaller window is listed, and the node counts as cut short.

    Parameters
    ----------
    lists, choice
        Lists of patterns, and the state of the search; rows, loads, losses and the stack change in place.
    depth, w
        Depth of the node; worker.
    lo, hi, target
        Least and largest load; load to begin with, tokens.
    """
    start, base, c = choice.rows[depth], lists.base[w], lists.slots[w]
    first = 0  # of several prices, the lists are made by the first
    profit, need = lists.profit[first], lists.bound[first, w] - choice.left[depth, first]
    reach, before = 0, -1
    while True:
        low, high = max(lo, target - reach), min(hi, target + reach)
        stop, branches, complete = list_window(
            *(lists.v, choice.avail, profit, c, low - base, high - base, need, AT_A_NODE, BRANCHES),
            *(lists.items, start),
        )
        choice.state.steps += branches
        if not complete:
            if before >= 0:  # the window before was listed in full, and is written over
                low, high = max(lo, target - before), min(hi, target + before)
                stop, _, _ = list_window(
                    *(lists.v, choice.avail, profit, c, low - base, high - base, need, AT_A_NODE, BRANCHES),
                    *(lists.items, start),
                )
            choice.short[depth] = 1
            for j in range(choice.best.size):
                choice.bound[depth, j] = choice.loads[j]
            break
        if low == lo and high == hi:
            break
        before = reach
        reach = 4 * max(1, reach)
    count = stop - start
    distance = np.empty(count, dtype=np.int64)
    for j in range(start, stop):
        lists.load[j] = base
        for i in range(lists.profit.shape[0]):
            lists.loss[j, i] = lists.bound[i, w]
        for q in range(c):
            k = lists.items[j, q]
            lists.load[j] += lists.v[k]
            for i in range(lists.profit.shape[0]):
                lists.loss[j, i] -= lists.profit[i, k]
        distance[j - start] = abs(lists.load[j] - target)
    at = choice.begin[depth + 1, w]
    for r in range(count):
        choice.live[at + r] = start + r
    sort_up(distance, choice.live[at : at + count])
    choice.end[depth + 1, w] = at + count
    choice.rows[depth + 1] = stop
