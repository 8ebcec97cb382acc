"""Lists of patterns: of all workers before anything is decided, of some at a node, and what is left of them at a node.

A list holds all patterns of a worker whose total lies in a window and whose profit is no less than what is needed:
depth first, the largest request first, any number of slots. A branch is left when what is still to be chosen cannot
lift the total into the window, cannot keep it there, or cannot bring the profit that is missing. Workers with too many
patterns to be listed before anything is decided are listed at the nodes.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.leximax.even import sort_up
from lbopt.kernels.leximax.state import AT_A_NODE, BRANCHES, INFINITY, Choice, Lists
from lbopt.kernels.search.pattern import last_fitting


@kernel
def list_window(
    v: Ints,
    avail: Ints,
    p: Ints,
    c: int,
    lo: int,
    hi: int,
    need: int,
    room: int,
    most: int,
    items: Ints,
    start: int,
) -> tuple[int, int, bool]:
    """Write the patterns of c requests with lo <= total <= hi and profit >= need to rows start, start + 1, ...

    Parameters
    ----------
    v, avail, p
        int64 (K,): sizes, tokens, ascending; requests left (changed and put back); profits, 1/scale tokens.
    c, lo, hi, need
        Slots; least and largest total, tokens; least profit, 1/scale tokens.
    room, most
        Most rows; most branches.
    items, start
        int64 (R, Q), written from row `start` on: classes, largest first.

    Returns
    -------
    end, branches, complete
        The end of the rows; branches looked at; False where there are more rows than `room`, or than `most` branches
        lead to.
    """
    K = v.size
    top = np.empty(K, dtype=np.int64)  # the best profit of a class 0..k
    small = np.zeros(c + 1, dtype=np.int64)
    best, count = -(1 << 60), 0
    for k in range(K):
        if avail[k] > 0:
            best = max(best, p[k])
        top[k] = best
        for _ in range(min(avail[k], c - count)):
            count += 1
            small[count] = small[count - 1] + v[k]
    if count < c:
        return start, 1, True
    chosen, complete = np.zeros(c, dtype=np.int64), True
    end, branches, depth, total, worth = start, 0, 0, 0, 0
    k = last_fitting(v, hi - small[c - 1])
    while True:
        rest = c - depth - 1
        found = False
        if rest == 0:
            while k >= 0 and total + v[k] >= lo:
                if avail[k] > 0 and worth + p[k] >= need:
                    if end - start == room or end == items.shape[0]:
                        complete = False
                        break
                    for q in range(depth):
                        items[end, q] = chosen[q]
                    items[end, depth] = k
                    end += 1
                branches += 1
                k -= 1
        else:
            while k >= 0 and total + v[k] * (rest + 1) >= lo and worth + (rest + 1) * top[k] >= need:
                branches += 1
                if avail[k] > 0 and worth + p[k] + rest * top[k] >= need:
                    found = True
                    break
                k -= 1
        if found and complete and branches <= most:
            chosen[depth] = k
            avail[k] -= 1
            total += v[k]
            worth += p[k]
            depth += 1
            k = min(k, last_fitting(v, hi - total - small[c - depth - 1]))
            continue
        complete = complete and branches <= most
        if depth == 0:
            return end, branches, complete
        while True:  # take the last one back, all of them where this has failed
            depth -= 1
            k = chosen[depth]
            avail[k] += 1
            total -= v[k]
            worth -= p[k]
            if complete or depth == 0:
                break
        if not complete:
            return end, branches, False
        k -= 1


@kernel
def list_workers(
    v: Ints,
    n: Ints,
    base: Ints,
    slots: Ints,
    least: Ints,
    largest: Ints,
    profit: Ints,
    need: Ints,
    room: int,
    most: int,
    items: Ints,
    first: Ints,
    last: Ints,
    deadline: int,
) -> int:
    """List the patterns of each worker w with a load in its window and a profit of at least need[w]; return the rows.

    Rows first[w]..last[w] of `items` (R, Q) are those of worker w; first[w] = last[w] = -1 where there are more than
    `room`, or more than `most` branches to be looked at, or no rows left, or no time.

    Parameters
    ----------
    v, n, profit
        int64 (K,): sizes, tokens, ascending; requests (changed and put back); profits, 1/scale tokens.
    base, slots, need
        int64 (W,): loads before, tokens; slots; least profit, 1/scale tokens.
    least, largest
        int64 (W,): window of the load, tokens.
    room, most
        Most patterns of a worker; most branches looked at for them.
    items, first, last
        int64 (R, Q), (W,) and (W,), written: classes of each row; rows of each worker.
    deadline
        Nanoseconds, see `lbopt.kernels.deadline`.
    """
    end = 0
    for w in range(slots.size):
        first[w] = last[w] = -1
        if passed(deadline):
            continue
        stop, _, complete = list_window(
            *(v, n, profit, slots[w], least[w] - base[w], largest[w] - base[w], need[w]),
            *(room, most, items, end),
        )
        if complete:
            first[w], last[w] = end, stop
            end = stop
    return end


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
