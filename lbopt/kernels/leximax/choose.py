"""Depth-first search over lists of patterns for the assignment whose loads, sorted from the largest down, are least.

Every open worker takes one pattern. Those of most workers are listed beforehand; `loss[:, i]` counts them against the
i-th of several budgets, each of which comes from prices (`lbopt.kernels.search.prices`). The others are listed when all
listed workers are decided, from the requests that are left then. Decided is the worker with fewest patterns left. At
every node

* the decided loads agree with the best vector known up to some place, and no other load may exceed its value there;
* the loads have a fixed sum, so what the others can have at most and at least bounds each of them;
* the least losses of the undecided workers have to fit each budget;
* the most even loads within these bounds (`even_loads`), together with the decided ones, must be less than the best.

A node's lists are those of its parent, filtered, on one stack. The search can be interrupted and taken up again: all it
needs is in arrays.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.leximax.even_loads import compared
from lbopt.kernels.leximax.node import settle_node
from lbopt.kernels.leximax.sorting import sort_alone
from lbopt.kernels.leximax.state import DONE, OPEN, Choice, Lists


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
