"""Depth-first search over lists of patterns for the assignment whose loads, sorted from the largest down, are least.

Every open worker takes one pattern. Those of most workers are listed beforehand; their losses count against a budget
that comes from prices (`lbopt.kernels.search.prices`). The others are listed when all listed workers are decided, from
the requests that are left then. Decided is the worker with fewest patterns left. At every node

* the decided loads agree with the best vector known up to some place, and no other load may exceed its value there;
* the loads have a fixed sum, so what the others can have at most and at least bounds each of them;
* the least losses of the undecided workers have to fit the budget;
* the most even loads within these bounds (`even`), together with the decided ones, must be less than the best.

A node's lists are those of its parent, filtered, on one stack.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.leximax.even import compared, sort_alone, water
from lbopt.kernels.leximax.lists import INFINITY, Choice, Lists, filtered, list_all, list_worker

#: Times that the lists of a node are filtered.
_ROUNDS = 3

#: How a search ends: nothing better is left, or it was cut short.
DONE, OPEN = 1, 0


@kernel
def choose_rows(lists: Lists, choice: Choice, limit: int) -> int:
    """Search for about `limit` steps, or to the deadline; DONE where nothing better than choice.best is left."""
    items, state, avail, row = lists.items, choice.state, choice.avail, choice.row
    W = lists.slots.size
    list_all(lists, choice)
    state.steps = 0
    depth, fresh = 0, True
    while depth >= 0:
        if fresh:
            if state.steps >= limit or out_of_time(state):
                return OPEN
            chosen = -1
            if depth == W:
                if _leaf(lists, choice):  # all patterns of the last worker have the same load
                    choice.cursor[depth - 1] = choice.end[depth, choice.order[depth - 1]]
            else:
                chosen = _settle(lists, choice, depth)
                if state.cut == 1:
                    return OPEN
            if chosen < 0:
                depth -= 1
                fresh = False
                continue
            choice.order[depth], choice.cursor[depth] = chosen, choice.begin[depth + 1, chosen]
        w = choice.order[depth]
        c = lists.slots[w]
        if row[w] >= 0:
            for q in range(c):
                avail[items[row[w], q]] += 1
            row[w] = -1
        fresh = choice.cursor[depth] < choice.end[depth + 1, w]
        if fresh:
            j = choice.live[choice.cursor[depth]]
            choice.cursor[depth] += 1
            for q in range(c):
                avail[items[j, q]] -= 1
            row[w] = j
            choice.left[depth + 1] = choice.left[depth] - lists.loss[j]
            choice.need[depth + 1] = choice.need[depth] - lists.load[j]
            depth += 1
        else:
            depth -= 1
    return DONE


@kernel
def _settle(lists: Lists, choice: Choice, depth: int) -> int:
    """Filter the lists at a node; return the worker to be decided, -1 where nothing better is below it."""
    row, lo, hi, even, loads = choice.row, choice.lo, choice.hi, choice.even, choice.loads
    W, need = row.size, choice.need[depth]
    ceiling = _ceiling(lists, choice, depth)
    top = 0  # the lists of this node begin where those of its parent end
    for w in range(W):
        top = max(top, choice.end[depth, w])
        choice.least[w] = 0
        if row[w] < 0:
            lo[w], hi[w] = _box(lists, choice, w, ceiling)
    spare = choice.left[depth]
    for turn in range(_ROUNDS):
        at, dropped, sum_lo, sum_hi, spent = top, 0, 0, 0, 0
        for w in range(W):
            if row[w] >= 0:
                continue
            if lists.listed[w] == 1:
                before = choice.end[depth + 1, w] - choice.begin[depth + 1, w]
                first = at
                at = filtered(lists, choice, depth, w, at, spare, turn == 0)
                dropped += before - (at - first)
            else:
                choice.begin[depth + 1, w] = choice.end[depth + 1, w] = at
            if lo[w] > hi[w]:
                return -1
            sum_lo += lo[w]
            sum_hi += hi[w]
            spent += choice.least[w]
        spare = choice.left[depth] - spent
        if need < sum_lo or need > sum_hi or spare < 0:
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
            count = choice.end[depth + 1, w] - choice.begin[depth + 1, w]
            if lists.listed[w] == 0:
                count = INFINITY // 2 + lists.slots[w]
            if count < fewest:
                chosen, fewest, place = w, count, rest
            lo[rest], hi[rest] = lo[w], hi[w]
            rest += 1
    if not water(lo[:rest], hi[:rest], need, even[:rest]):
        return -1
    for r in range(rest):
        loads[depth + r] = even[r]
    target = even[place]
    sort_alone(loads)
    if compared(loads, choice.best) >= 0:
        return -1
    choice.rows[depth + 1], choice.left[depth + 1] = choice.rows[depth], choice.left[depth]
    if lists.listed[chosen] == 0:
        listed = list_worker(lists, choice, depth + 1, chosen, lo[place], hi[place], target)
        choice.state.cut = 0 if listed else 1
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
def _box(lists: Lists, choice: Choice, w: int, ceiling: int) -> tuple[int, int]:
    """Return the least and the largest load of worker w with requests that are left, as far as that is needed."""
    if lists.listed[w] == 1:
        return -INFINITY, ceiling
    c, v, avail = lists.slots[w], lists.v, choice.avail
    low = high = lists.base[w]
    smaller = larger = 0
    for k in range(v.size):
        some = min(avail[k], c - smaller)
        low += some * v[k]
        smaller += some
        last = v.size - 1 - k
        some = min(avail[last], c - larger)
        high += some * v[last]
        larger += some
    return low, min(high, ceiling)


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
