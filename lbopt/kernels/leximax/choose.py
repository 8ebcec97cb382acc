"""Depth-first search over lists of patterns for the assignment whose loads, sorted from the largest down, are least.

Every open worker takes one pattern. Those of most workers are listed beforehand; `loss[:, i]` counts them against the
i-th of several budgets, each of which comes from prices (`lbopt.kernels.search.prices`). The others are listed when all
listed workers are decided, from the requests that are left then. Decided is the worker with fewest patterns left. At
every node

* the decided loads agree with the best vector known up to some place, and no other load may exceed its value there;
* the loads have a fixed sum, so what the others can have at most and at least bounds each of them;
* the least losses of the undecided workers have to fit each budget;
* the most even loads within these bounds (`even`), together with the decided ones, must be less than the best.

A node's lists are those of its parent, filtered, on one stack. The search can be interrupted and taken up again: all it
needs is in arrays.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.leximax.even import compared, sort_alone, water
from lbopt.kernels.leximax.lists import filtered, list_here
from lbopt.kernels.leximax.state import DONE, INFINITY, OPEN, Choice, Lists

#: Times that the lists of a node are filtered.
_ROUNDS = 3


@kernel
def settle_node(lists: Lists, choice: Choice, depth: int) -> int:
    """Filter the lists at a node; return the worker to be decided, -1 where nothing better is below it."""
    row, begin, end = choice.row, choice.begin, choice.end
    lo, hi, even, loads = choice.lo, choice.hi, choice.even, choice.loads
    W, prices = row.size, lists.profit.shape[0]
    ceiling, need, spare, least = _ceiling(lists, choice, depth), choice.need[depth], choice.spare, choice.least
    choice.short[depth] = 0
    if not _suffice(lists, choice, need):
        return -1
    top = 0  # the lists of this node begin where those of its parent end
    for w in range(W):
        top = max(top, end[depth, w])
        if row[w] < 0:
            lo[w], hi[w] = _box(lists, choice.avail, w, ceiling)
        for i in range(prices):
            least[w, i] = 0
    for i in range(prices):
        spare[i] = choice.left[depth, i]
    for turn in range(_ROUNDS):
        at = top
        dropped, sum_lo, sum_hi = 0, 0, 0
        for w in range(W):
            if row[w] >= 0:
                continue
            if lists.listed[w] == 1:
                source = depth + (1 if turn > 0 else 0)
                first, last = begin[source, w], end[source, w]
                begin[depth + 1, w] = at
                at, low, high = filtered(lists, choice, w, first, last, at, turn == 0, lo[w], hi[w])
                end[depth + 1, w] = at
                dropped += last - first - (at - begin[depth + 1, w])
                lo[w], hi[w] = low, high
            else:
                begin[depth + 1, w] = end[depth + 1, w] = at
            if lo[w] > hi[w]:
                return -1
            sum_lo += lo[w]
            sum_hi += hi[w]
        if need < sum_lo or need > sum_hi:
            return -1
        for i in range(prices):
            spare[i] = choice.left[depth, i]
            for w in range(W):
                if row[w] < 0:
                    spare[i] -= least[w, i]
            if spare[i] < 0:
                return -1
        if turn == _ROUNDS - 1 or (turn > 0 and dropped == 0):
            break
        for w in range(W):
            if row[w] < 0:
                low, high = lo[w], hi[w]
                lo[w], hi[w] = max(low, need - (sum_hi - high)), min(high, need - (sum_lo - low))
    rest, place, chosen, fewest = 0, 0, -1, INFINITY
    for w in range(W):
        if row[w] < 0:
            count = end[depth + 1, w] - begin[depth + 1, w] if lists.listed[w] == 1 else INFINITY // 2 + lists.slots[w]
            if count < fewest:
                chosen, fewest = w, count
            even[rest], lo[rest], hi[rest] = w, lo[w], hi[w]
            rest += 1
    low, high = 0, 0
    for r in range(rest):
        if even[r] == chosen:
            low, high = lo[r], hi[r]
            place = r
    if not water(lo[:rest], hi[:rest], need, even[:rest]):
        return -1
    target = even[place]
    for r in range(rest):
        loads[depth + r] = even[r]
    sort_alone(loads)
    if compared(loads, choice.best) >= 0:
        return -1
    choice.rows[depth + 1] = choice.rows[depth]
    if lists.listed[chosen] == 0:
        list_here(lists, choice, depth, chosen, low, high, target)
    return chosen


@kernel
def _ceiling(lists: Lists, choice: Choice, depth: int) -> int:
    """Sort the decided loads into loads[:depth], ascending; return what no other load may exceed."""
    loads, count = choice.loads, 0
    for w in range(choice.row.size):
        if choice.row[w] >= 0:
            loads[count] = lists.load[choice.row[w]]
            count += 1
    sort_alone(loads[:depth])
    for j in range(depth):
        if loads[depth - 1 - j] != choice.best[j]:
            return choice.best[j]
    return choice.best[depth]


@kernel
def _suffice(lists: Lists, choice: Choice, need: int) -> bool:
    """Whether the requests that are left can bring the loads of the undecided workers to the sum `need`."""
    v, avail, seats = lists.v, choice.avail, 0
    for w in range(choice.row.size):
        if choice.row[w] < 0:
            seats += lists.slots[w]
            need -= lists.base[w]
    most, count = 0, 0
    for k in range(v.size - 1, -1, -1):
        some = min(avail[k], seats - count)
        most += some * v[k]
        count += some
        if count == seats:
            break
    if most < need:
        return False
    count = 0
    for k in range(v.size):
        some = min(avail[k], seats - count)
        need -= some * v[k]
        count += some
        if count == seats:
            break
    return need >= 0


@kernel
def _box(lists: Lists, avail: Ints, w: int, ceiling: int) -> tuple[int, int]:
    """Return the least and the largest load of worker w with requests that are left, as far as that is needed.

    Parameters
    ----------
    lists
        Lists of patterns.
    avail
        int64 (K,): requests left.
    w, ceiling
        Worker; what no load may exceed, tokens.
    """
    if lists.listed[w] == 1:
        return -INFINITY, ceiling
    c, v = lists.slots[w], lists.v
    low = high = lists.base[w]
    count = 0
    for k in range(v.size):
        some = min(avail[k], c - count)
        low += some * v[k]
        count += some
        if count == c:
            break
    count = 0
    for k in range(v.size - 1, -1, -1):
        some = min(avail[k], c - count)
        high += some * v[k]
        count += some
        if count == c:
            break
    return low, min(high, ceiling)


@kernel
def choose_rows(lists: Lists, choice: Choice, limit: int) -> int:
    """Go on for about `limit` steps, or to the deadline.

    DONE where nothing better than choice.best is left, but for nodes cut short.
    """
    slots, items = lists.slots, lists.items
    state, avail, row, order, cursor = choice.state, choice.avail, choice.row, choice.order, choice.cursor
    W, prices = slots.size, lists.profit.shape[0]
    stop = state.steps + limit
    depth, fresh = state.depth, state.fresh == 1
    while depth >= 0:
        if fresh:
            if state.steps >= stop or out_of_time(state):
                state.depth, state.fresh = depth, 1
                return OPEN
            chosen = -1
            if depth == W:
                if _leaf(lists, choice):  # all patterns of the last worker have the same load
                    cursor[depth - 1] = choice.end[depth, order[depth - 1]]
            else:
                chosen = settle_node(lists, choice, depth)
            if chosen < 0:
                depth -= 1
                fresh = False
                continue
            order[depth], cursor[depth] = chosen, choice.begin[depth + 1, chosen]
        w = order[depth]
        c = slots[w]
        if row[w] >= 0:
            for q in range(c):
                avail[items[row[w], q]] += 1
            row[w] = -1
        fresh = cursor[depth] < choice.end[depth + 1, w]
        if fresh:
            j = choice.live[cursor[depth]]
            cursor[depth] += 1
            for q in range(c):
                avail[items[j, q]] -= 1
            row[w] = j
            for i in range(prices):
                choice.left[depth + 1, i] = choice.left[depth, i] - lists.loss[j, i]
            choice.need[depth + 1] = choice.need[depth] - lists.load[j]
            depth += 1
        else:
            if choice.short[depth] == 1 and compared(choice.bound[depth], choice.best) < 0:
                state.cut += 1
            depth -= 1
    state.depth = -1
    return DONE


@kernel
def _leaf(lists: Lists, choice: Choice) -> bool:
    """Keep a complete choice where it is better; return whether it is."""
    loads, row = choice.loads, choice.row
    for k in range(choice.avail.size):
        if lists.forced[k] == 1 and choice.avail[k] > 0:
            return False
    W = row.size
    for w in range(W):
        loads[w] = lists.load[row[w]]
    sort_alone(loads)
    if compared(loads, choice.best) >= 0:
        return False
    choice.state.gains += 1
    for w in range(W):
        choice.best[w] = loads[W - 1 - w]
        for q in range(lists.slots[w]):
            choice.answer[w, q] = lists.items[row[w], q]
    return True
