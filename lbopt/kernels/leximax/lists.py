"""Lists of patterns: of all workers before anything is decided, of some at a node, and what is left of them at a node.

A list holds all patterns of a worker whose load lies in a window and whose profit is no less than what is needed:
depth first, the largest request first, any number of slots. A branch is left when what is still to be chosen cannot
lift the total into the window, cannot keep it there, or cannot bring the profit that is missing. Workers with too many
patterns to be listed before anything is decided are listed at the nodes.

Letters: W open workers, K size classes, Q the most slots of a worker, R rows. A row is a pattern of one worker; profits
and losses are in 1/scale tokens.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.compile import kernel
from lbopt.kernels.leximax.even import sort_up
from lbopt.kernels.search.pattern import last_fitting

#: Patterns of a worker that are listed, and branches looked at for them.
MOST_PATTERNS, BRANCHES = 20_000, 400_000

#: Larger than every load.
INFINITY = 1 << 61

#: State of a choice. `steps`: work done; `gains`: improvements; `cut`: 1 where a list has become too long; `deadline`
#: and `expired`, see `lbopt.kernels.deadline`.
CHOICE = integers("steps", "gains", "cut", "deadline", "expired")


class Lists(NamedTuple):
    """The patterns of W workers, R rows in all; the rows change in place."""

    v: Ints  # (K,) sizes, ascending
    base: Ints  # (W,) loads before
    slots: Ints  # (W,)
    listed: Ints  # (W,) whether its patterns are listed before anything is decided
    profit: Ints  # (K,) of a request
    ceiling: Ints  # (W,) what no profit of a worker exceeds
    forced: Ints  # (K,) whether the requests of a class must be used
    items: Ints  # (R, Q) classes, :slots of the owner
    loss: Ints  # (R,) what the profit lacks
    load: Ints  # (R,) load of the owner with this pattern


class Choice(NamedTuple):
    """The state of a search; changes in place."""

    state: Record  # CHOICE
    avail: Ints  # (K,) requests left
    row: Ints  # (W,) the decided row, -1 = undecided
    order: Ints  # (W + 1,) who is decided at a depth
    cursor: Ints  # (W + 1,)
    left: Ints  # (W + 2,) losses that can be afforded
    need: Ints  # (W + 2,) sum of the loads of the undecided
    begin: Ints  # (W + 2, W) lists on the stack
    end: Ints  # (W + 2, W)
    rows: Ints  # (W + 2,) where the rows listed at a node begin
    live: Ints  # (.,) the stack of rows
    best: Ints  # (W,) the best loads, largest first
    answer: Ints  # (W, Q) the classes of each worker there; -1 in front where they came from elsewhere
    lo: Ints  # (W,) least load
    hi: Ints  # (W,) largest load
    even: Ints  # (W,) the most even loads of the undecided
    loads: Ints  # (W,) scratch: loads, ascending
    least: Ints  # (W,) scratch: least losses


@kernel
def list_patterns(lists: Lists, choice: Choice, w: int, lo: int, hi: int, need: int, start: int) -> int:
    """Write the patterns of worker w with lo <= load <= hi and profit >= need to rows start, start + 1, ...

    They are made of the requests that are left, classes largest first. Returns the end of the rows, -1 where they are
    too many.
    """
    v, p, items, avail, c = lists.v, lists.profit, lists.items, choice.avail, lists.slots[w]
    lo -= lists.base[w]
    hi -= lists.base[w]
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
        return start
    chosen, complete = np.zeros(c, dtype=np.int64), True
    end, branches, depth, total, worth = start, 0, 0, 0, 0
    k = last_fitting(v, hi - small[c - 1])
    while True:
        rest = c - depth - 1
        found = False
        if rest == 0:
            while k >= 0 and total + v[k] >= lo:
                if avail[k] > 0 and worth + p[k] >= need:
                    if end - start == MOST_PATTERNS or end == items.shape[0]:
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
        complete = complete and branches <= BRANCHES
        if found and complete:
            chosen[depth] = k
            avail[k] -= 1
            total += v[k]
            worth += p[k]
            depth += 1
            k = min(k, last_fitting(v, hi - total - small[c - depth - 1]))
            continue
        while depth > 0:  # take the last one back, all of them where this has failed
            depth -= 1
            k = chosen[depth]
            avail[k] += 1
            total -= v[k]
            worth -= p[k]
            if complete:
                break
        if not complete or rest == c - 1:
            choice.state.steps += branches
            return end if complete else -1
        k -= 1


@kernel
def list_worker(lists: Lists, choice: Choice, depth: int, w: int, lo: int, hi: int, target: int) -> bool:
    """Put the patterns of worker w with a load of lo..hi on the stack, those next to `target` first.

    The list begins at choice.begin[depth, w], its rows at choice.rows[depth]. False where it would be too long.
    """
    start, c = choice.rows[depth], lists.slots[w]
    stop = list_patterns(lists, choice, w, lo, hi, lists.ceiling[w] - choice.left[depth], start)
    if stop < 0:
        return False
    at = choice.begin[depth, w]
    count = stop - start
    distance = np.empty(count, dtype=np.int64)
    for j in range(start, stop):
        load, gained = lists.base[w], 0
        for q in range(c):
            load += lists.v[lists.items[j, q]]
            gained += lists.profit[lists.items[j, q]]
        lists.load[j], lists.loss[j] = load, lists.ceiling[w] - gained
        distance[j - start] = abs(load - target)
        choice.live[at + j - start] = j
    sort_up(distance, choice.live[at : at + count])
    choice.end[depth, w] = at + count
    choice.rows[depth] = stop
    return True


@kernel
def list_all(lists: Lists, choice: Choice) -> None:
    """List the patterns of all workers whose list is not too long, before anything is decided.

    What the best pattern of a list lacks is lost whatever is chosen: the ceiling falls by it, and so does the budget.
    """
    root = 0
    for w in range(lists.slots.size):
        start = choice.rows[root]
        choice.begin[root, w] = choice.end[root, w] = start
        lists.listed[w] = 1 if list_worker(lists, choice, root, w, choice.lo[w], choice.hi[w], choice.even[w]) else 0
        if choice.rows[root] > start:
            lost = INFINITY
            for j in range(start, choice.rows[root]):
                lost = min(lost, lists.loss[j])
            for j in range(start, choice.rows[root]):
                lists.loss[j] -= lost
            lists.ceiling[w] -= lost
            choice.left[root] -= lost


@kernel
def filtered(lists: Lists, choice: Choice, depth: int, w: int, at: int, spare: int, fresh: bool) -> int:
    """Copy what is left of a worker's list to `at`, and return its end; choice.lo, hi and least follow.

    What is left has a load in lo..hi and affords its loss: `spare` is what the least losses of all leave. `fresh` says
    that the list is that of the node before, some requests of which may have been taken since.
    """
    live, avail, c = choice.live, choice.avail, lists.slots[w]
    source = depth if fresh else depth + 1
    first, last = choice.begin[source, w], choice.end[source, w]
    low, high, cheapest = INFINITY, -INFINITY, INFINITY
    choice.begin[depth + 1, w] = at
    for r in range(first, last):
        j = live[r]
        load, loss = lists.load[j], lists.loss[j]
        if load < choice.lo[w] or load > choice.hi[w] or loss > spare + choice.least[w]:
            continue
        if not fresh or _free(lists.items[j], c, avail):
            live[at] = j
            at += 1
            low, high, cheapest = min(low, load), max(high, load), min(cheapest, loss)
    choice.state.steps += last - first + 1
    choice.end[depth + 1, w] = at
    choice.lo[w], choice.hi[w], choice.least[w] = low, high, cheapest
    return at


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
