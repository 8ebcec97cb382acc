"""Branch and bound on chain counts: how many requests of classes j, j + 1, ... a worker takes.

Visiting a node solves its program, rounds the dual values and evaluates them exactly. A solution that is whole is an
assignment; otherwise it is rounded to one, and the node is split where the solution is undecided and the two halves
differ most. The search plunges into one child and comes back to the open node of least bound.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.bounds import cheapest_pattern, exact_bound, price_requests, within_range
from lbopt.kernels.known_ends.copying import copy_row, copy_rows, fill_row, fill_rows
from lbopt.kernels.known_ends.dictionary import DEAR, IMPOSSIBLE, SOLVED, objective_value, run, settle_values
from lbopt.kernels.known_ends.placing import add_loads, cost_of
from lbopt.kernels.known_ends.polish import polish
from lbopt.kernels.known_ends.relaxation import (
    add_broken_rows,
    begin_program,
    drop_loose_rows,
    round_prices,
    set_bounds,
)
from lbopt.kernels.known_ends.terms import (
    AT_CLASS,
    AT_LIMIT,
    AT_NODE,
    AT_WORKER,
    BOUND,
    CONSTANT,
    COST,
    CURRENT,
    DONE,
    FAR,
    FRESH,
    INSIDE,
    LINES,
    NODES,
    OPEN,
    OPEN_NODES,
    ORDERED,
    OUTCOME,
    PLUNGE,
    SCALE,
    STALE,
    STARTED,
    STUCK,
    UP_FIRST,
    VISITED,
    WORK,
    WORKERS,
    Box,
    Draft,
    Nodes,
    Prices,
    Program,
    Window,
)

#: Pivots at one node, beyond which its prices are taken as they are.
_PIVOTS = 20_000

#: So many first nodes, and every so manieth after them, are rounded to an assignment.
_EVERY_NODE, _EVERY = 64, 8

#: Outcomes of a visit.
REFUTED, BRANCHED, SETTLED = range(3)


@kernel
def enter(window: Window, nodes: Nodes, box: Box, node: int) -> None:
    """Set the chain counts of the box to what the node and those above it say."""
    fill_rows(box.least, 0)
    for w in range(window.slots.size):
        fill_row(box.most[w], window.slots[w])
    while node > 0:
        w, j, a = nodes.worker[node], nodes.klass[node], nodes.limit[node]
        if nodes.sense[node] > 0:
            box.most[w, j] = min(box.most[w, j], a)
        else:
            box.least[w, j] = max(box.least[w, j], a + 1)
        node = nodes.parent[node]
    for w in range(window.slots.size):  # a chain holds no more than a longer one, and no less than a shorter one
        for k in range(1, window.n.size):
            box.most[w, k] = min(box.most[w, k], box.most[w, k - 1])
        for k in range(window.n.size - 2, -1, -1):
            box.least[w, k] = max(box.least[w, k], box.least[w, k + 1])


@kernel
def strike(window: Window, prices: Prices, box: Box, cost: int) -> int:
    """Rule out classes on workers where these prices say that nothing below `cost` takes them; return how many.

    Only at the root, where no chain is limited. A request that is not among the cheapest takes the place of the dearest
    of them, at least.
    """
    scale, W, K = window.facts[SCALE], window.slots.size, window.n.size
    T = window.v.shape[1]
    if not within_range(window, prices.mu):
        return 0
    base = 0
    for w in range(W):
        for h in range(T):
            base += prices.pi[w, h] * window.peak[w, h]
    for k in range(K):
        base += window.n[k] * prices.mu[k]
    for w in range(W):
        price_requests(window, prices.pi, prices.mu, w, prices.value)
        base += cheapest_pattern(window, box, w, prices.value, prices.best)
    struck = 0
    for w in range(W):
        price_requests(window, prices.pi, prices.mu, w, prices.value)
        dearest = dearest_chosen(window, box, w, prices.value, prices.best)
        for k in range(K):
            if box.allowed[w, k] == 1 and prices.value[k] > dearest:
                raised = base + prices.value[k] - dearest
                if window.facts[CONSTANT] - (-raised) // scale >= cost:
                    box.allowed[w, k] = 0
                    struck += 1
    return struck


@kernel
def dearest_chosen(window: Window, box: Box, w: int, value: Ints, best: Ints) -> int:
    """Return the slots[w]-th least value of the requests that are allowed, copies counted; FAR where they are fewer."""
    c, held = window.slots[w], 0
    for k in range(value.size):
        if box.allowed[w, k] == 0:
            continue
        for _ in range(min(c, window.n[k])):
            if held == c and value[k] >= best[c - 1]:
                break
            at = held if held < c else c - 1
            while at > 0 and best[at - 1] > value[k]:
                best[at] = best[at - 1]
                at -= 1
            best[at] = value[k]
            held = min(c, held + 1)
    return best[c - 1] if held == c else FAR


@kernel
def begin_node(window: Window, known: Ints, program: Program, box: Box) -> None:
    """Give the program the bounds of the box."""
    drop_loose_rows(known, program)
    set_bounds(window, known, program, box)
    settle_values(known, program)
    program.number[3] = _dear(window, known, program)
    known[AT_NODE] = known[FRESH] = 0


@kernel
def _dear(window: Window, known: Ints, program: Program) -> float:
    """Return the objective from which on a node is not worth solving further."""
    cutoff = (known[COST] - window.facts[CONSTANT]) / program.number[0]
    return cutoff + 1e-9 * abs(cutoff) + 0.5 / program.number[0]


@kernel
def solve_node(window: Window, known: Ints, program: Program, prices: Prices, box: Box, end: int) -> tuple[bool, int]:
    """Go on with the program of the box; return whether it is done, and the bound that its prices prove.

    The values of the program are its solution where the bound is below the best cost. Where the exact bound falls short
    of the program's objective, the dictionary has gathered errors of rounding, and is made anew.
    """
    cost = known[COST]
    while True:
        ended, line, sign, missing = run(known, program, end)
        objective = objective_value(program)
        if ended == IMPOSSIBLE:
            needed = program.number[3] - objective
            round_prices(window, known, program, line, sign * 2.0 * max(1.0, needed) / missing, prices)
            bound = exact_bound(window, prices, box)
            if bound >= cost or known[FRESH] == 1:
                return True, bound
            _renew(window, known, program, box)
        elif (
            ended == DEAR
            or known[AT_NODE] > _PIVOTS
            or (ended == SOLVED and add_broken_rows(window, known, program, end) == 0)
        ):
            round_prices(window, known, program, -1, 0.0, prices)
            bound = exact_bound(window, prices, box)
            if bound >= cost:
                return True, bound
            promised = window.facts[CONSTANT] + objective * program.number[0]
            if bound < promised - 1.0 - 1e-7 * abs(promised) and known[FRESH] == 0:
                _renew(window, known, program, box)
            elif ended == DEAR:
                program.number[3] = objective + 10.0 / program.number[0] + 1e-6 * abs(objective)
            else:
                return True, bound
        if known[WORK] >= end:
            return False, -FAR


@kernel
def _renew(window: Window, known: Ints, program: Program, box: Box) -> None:
    """Begin the program anew, once for a node."""
    begin_program(window, known, program)
    begin_node(window, known, program, box)
    known[FRESH] = 1


@kernel
def round_solution(window: Window, program: Program, draft: Draft, rest: Ints) -> int:
    """Make an assignment of the program's values, the largest ones first, and polish it; return its cost or FAR."""
    W, K = window.slots.size, window.n.size
    X = program.klass.size
    largest, below = 1e300, 0
    room = np.empty(W, np.int64)
    copy_row(room, window.slots)
    copy_row(draft.left, window.n)
    while True:
        x, amount = -1, 1e-6
        for other in range(X):  # the next one in descending order, ties in the order of columns
            value = program.value[other]
            if value > amount and (value < largest or (value == largest and other > below)):
                x, amount = other, value
        if x < 0:
            break
        largest, below = amount, x
        k, w = program.klass[x], program.worker[x]
        for _ in range(max(1, int(min(amount, float(window.slots[w])) + 0.5))):
            if room[w] > 0 and draft.left[k] > 0:
                room[w] -= 1
                draft.left[k] -= 1
                draft.pattern[w, room[w]] = k
    _place_owed(window, draft, room)
    k = 0
    for w in range(W):
        while room[w] > 0:
            best, near = -1, FAR
            goal = 0.0
            for h in range(window.v.shape[1]):
                goal += program.value[X + h] - program.start[w, h]
            for q in range(room[w], window.slots[w]):
                goal -= program.weight[draft.pattern[w, q]]
            for k in range(K):
                if draft.left[k] > 0:
                    away = int(abs(goal / room[w] - program.weight[k]) * program.number[0])
                    if away < near:
                        best, near = k, away
            if best < 0:
                return FAR
            room[w] -= 1
            draft.left[best] -= 1
            draft.pattern[w, room[w]] = best
    add_loads(window, draft)
    return polish(window, draft, 8, rest)


@kernel
def _place_owed(window: Window, draft: Draft, room: Ints) -> None:
    """Give the requests that must be admitted and are not yet to workers with room, or in the place of others."""
    for k in range(window.n.size):
        if window.must[k] == 0:
            continue
        while draft.left[k] > 0:
            found, at = -1, -1
            for w in range(room.size):
                if room[w] > 0 and (found < 0 or room[w] > room[found]):
                    found = w
            if found >= 0:
                room[found] -= 1
                at = room[found]
            else:
                for w in range(room.size):
                    for q in range(window.slots[w]):
                        if window.must[draft.pattern[w, q]] == 0:
                            found, at = w, q
                if found < 0:
                    return
                draft.left[draft.pattern[found, at]] += 1
            draft.pattern[found, at] = k
            draft.left[k] -= 1


@kernel
def choose_branch(window: Window, program: Program, prices: Prices, box: Box, at: Ints) -> bool:
    """Choose worker, class and limit of the chain count to split on; return False where the solution is whole."""
    W, K = window.slots.size, window.n.size
    amount = np.zeros((W, K))
    for x in range(program.klass.size):
        amount[program.worker[x], program.klass[x]] = program.value[x]
    best = 0.0
    for w in range(W):
        count, above = 0.0, -1
        for k in range(K - 1, -1, -1):
            if amount[w, k] <= 1e-7:
                continue
            if above >= 0:
                part = count - int(count)
                differ = 1e-3
                for h in range(window.v.shape[1]):
                    differ += prices.pi[w, h] * abs(program.size[above, h] - program.size[k, h])
                score = min(part, 1.0 - part) * differ
                if min(part, 1.0 - part) > 1e-6 and score > best:
                    best = score
                    middle = 0.5 * (program.weight[above] + program.weight[k])
                    j = above
                    while j > k + 1 and program.weight[j - 1] >= middle:
                        j -= 1
                    at[AT_WORKER], at[AT_CLASS], at[AT_LIMIT] = w, j, int(count)
                    at[UP_FIRST] = 1 if part > 0.5 else 0
            above = k
            count += amount[w, k]
    return best > 0.0


@kernel
def split_anyhow(window: Window, box: Box, at: Ints) -> bool:
    """Choose a chain count that is not settled; return False where all are."""
    for w in range(window.slots.size):
        for j in range(1, window.n.size):
            if box.least[w, j] < box.most[w, j]:
                at[AT_WORKER], at[AT_CLASS], at[AT_LIMIT] = w, j, box.least[w, j]
                at[UP_FIRST] = 0
                return True
    return False


@kernel
def take_settled(window: Window, box: Box, prices: Prices, draft: Draft, cost: int) -> int:
    """Price the one assignment that the box holds, all chain counts being settled; return its cost, FAR for none.

    The prices prove that cost, or, where the classes are too small for it, more than `cost`.
    """
    W, T = window.peak.shape
    for w in range(W):
        q = 0
        for k in range(window.n.size):
            above = box.least[w, k + 1] if k + 1 < window.n.size else 0
            for _ in range((window.slots[w] if k == 0 else box.least[w, k]) - above):
                if q < window.slots[w]:
                    draft.pattern[w, q] = k
                    q += 1
        if q < window.slots[w]:
            return FAR
    add_loads(window, draft)
    fill_rows(prices.pi, 0)
    fill_row(prices.mu, 0)
    for h in range(T):
        top, load = window.owner[h], 0
        for w in range(W):
            if draft.loads[w, h] > load:
                top, load = w, draft.loads[w, h]
        prices.pi[top, h] = window.facts[WORKERS] * window.facts[SCALE]
    missing = 1 + max(0, cost - exact_bound(window, prices, box))
    for k in range(window.n.size):
        if draft.left[k] < 0 or (window.must[k] == 1 and draft.left[k] > 0):
            # one price of a class that is short, or left over, shows it
            prices.mu[k] = missing * window.facts[SCALE] * (-1 if draft.left[k] < 0 else 1)
            return FAR
    return cost_of(window, draft.loads)


@kernel
def conclude(
    window: Window,
    known: Ints,
    program: Program,
    prices: Prices,
    box: Box,
    draft: Draft,
    answer: Ints,
    at: Ints,
    bound: int,
) -> tuple[int, int]:
    """Say what comes of a node whose program gave `bound`, and which bound it has.

    A branch is told in `at`; a better assignment is kept.
    """
    if bound >= known[COST]:
        return REFUTED, bound
    whole = not choose_branch(window, program, prices, box, at)
    cost = FAR
    if whole or known[VISITED] < _EVERY_NODE or known[VISITED] % _EVERY == 0:
        cost = round_solution(window, program, draft, np.empty(window.v.shape[1], np.int64))
    if cost < known[COST]:
        known[COST] = cost
        copy_rows(answer, draft.pattern)
        if bound >= cost:
            return REFUTED, bound
    if whole and not split_anyhow(window, box, at):
        cost = take_settled(window, box, prices, draft, known[COST])
        if cost < known[COST]:
            known[COST] = cost
            copy_rows(answer, draft.pattern)
        return SETTLED, max(bound, exact_bound(window, prices, box))
    return BRANCHED, bound


@kernel
def push(known: Ints, nodes: Nodes, parent: int, at: Ints, sense: int, bound: int) -> None:
    """Open a child."""
    i = known[NODES]
    nodes.parent[i], nodes.sense[i], nodes.bound[i] = parent, sense, bound
    nodes.worker[i], nodes.klass[i], nodes.limit[i] = at[AT_WORKER], at[AT_CLASS], at[AT_LIMIT]
    nodes.open[known[OPEN_NODES]] = i
    known[NODES] += 1
    known[OPEN_NODES] += 1


@kernel
def take_node(known: Ints, nodes: Nodes) -> int:
    """Take the node to visit next out of the open ones: the one just opened, or the one of least bound."""
    count = known[OPEN_NODES]
    at = count - 1
    if known[PLUNGE] == 0 and known[ORDERED] == 0:
        for i in range(count):
            if nodes.bound[nodes.open[i]] < nodes.bound[nodes.open[at]]:
                at = i
    node = nodes.open[at]
    nodes.open[at] = nodes.open[count - 1]
    known[OPEN_NODES] = count - 1
    return node


@kernel
def advance(
    window: Window,
    known: Ints,
    program: Program,
    prices: Prices,
    box: Box,
    draft: Draft,
    nodes: Nodes,
    answer: Ints,
    at: Ints,
    work: int,
) -> int:
    """Go on for about `work` units; return STUCK, OPEN or DONE. A node may be left in its midst.

    With known[ORDERED] it returns after each node, and goes on with what "at most" leaves, then with "at least".
    """
    if known[STARTED] == 0:
        known[STARTED] = 1
        begin_program(window, known, program)
        nodes.parent[0], nodes.bound[0], nodes.open[0] = -1, known[BOUND], 0
        known[NODES] = known[OPEN_NODES] = 1
    end = known[WORK] + work
    while True:
        if known[INSIDE] == 0:
            if known[OPEN_NODES] == 0:
                known[BOUND] = known[COST]
                return DONE
            if known[NODES] + 2 > nodes.parent.size:
                return STUCK
            node = take_node(known, nodes)
            if nodes.bound[node] >= known[COST]:
                known[PLUNGE] = 0
                continue
            known[CURRENT], known[INSIDE] = node, 1
            if known[STALE] == 1:  # the program has fewer columns from here on
                begin_program(window, known, program)
                known[STALE] = 0
            enter(window, nodes, box, node)
            begin_node(window, known, program, box)
            known[WORK] += 20 + (known[LINES] * program.nonbasic.size >> 9)
        done, bound = solve_node(window, known, program, prices, box, end)
        if not done:
            return OPEN
        node = known[CURRENT]
        known[INSIDE] = known[PLUNGE] = 0
        known[VISITED] += 1
        outcome, bound = conclude(window, known, program, prices, box, draft, answer, at, bound)
        bound = max(bound, nodes.bound[node])
        if outcome == BRANCHED:
            up = at[UP_FIRST] == 1 and known[ORDERED] == 0
            push(known, nodes, node, at, 1 if up else -1, bound)
            push(known, nodes, node, at, -1 if up else 1, bound)
            known[PLUNGE] = 1
        elif outcome == SETTLED and bound < known[COST]:
            return STUCK
        known[OUTCOME] = outcome if outcome == BRANCHED else REFUTED
        if known[ORDERED] == 1:
            return OPEN if known[OPEN_NODES] > 0 else DONE
        least = known[COST]
        for i in range(known[OPEN_NODES]):
            least = min(least, nodes.bound[nodes.open[i]])
        known[BOUND] = max(known[BOUND], least)
        if known[OPEN_NODES] > 0 and (known[WORK] >= end or known[VISITED] == 1):  # after the root, classes are struck
            return OPEN
