"""Branch and bound over boxes of sums: the cheapest open node next, but a child of the last one while that is open.

A node is a box. Its sides are moved to totals that exist, its relaxation is solved with cuts, and then either nothing
cheaper than the best known is left in it, or some worker has a sum that it cannot have (two children, on both sides of
it), or all sums exist one by one: then exact sets are looked for. Where there are none, the largest request of the
worker that was hardest to serve is smaller than it could be, exactly that one, or larger.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.beneath import fill_beneath, margins
from lbopt.kernels.windows.boxes import snap
from lbopt.kernels.windows.branching import (
    around_class,
    beside,
    can_split,
    impossible_total,
    next_to_settle,
    scarce,
)
from lbopt.kernels.windows.cuts import refresh, separate
from lbopt.kernels.windows.nodes import push, take
from lbopt.kernels.windows.placing import cost_of, fill_near, offer
from lbopt.kernels.windows.polish import polish
from lbopt.kernels.windows.relaxation import ABOVE, EMPTY, OPTIMAL, exact_bound, first_basis, optimise, sound
from lbopt.kernels.windows.sets import FOUND, GAVE_UP, PATIENCE, assemble
from lbopt.kernels.windows.terms import (
    BOUND,
    CLOSED,
    CONSTANT,
    COST,
    CUT_COUNT,
    DONE,
    FORCED,
    HARDEST,
    NODES,
    OPEN,
    PIVOTS,
    PLUNGE,
    RAY,
    STARTED,
    STUCK,
    UNSETTLED,
    VISITED,
    WORK,
    WORKERS,
    Search,
    Window,
)

#: An assignment near the sums is looked for at the first nodes, up to so many open workers in all, and at each 16th
#: from the first one on.
_EAGER = 400

#: Nodes after which a tree is not a short one: from then on, who takes the largest request is asked first.
_STRAIGHT = 100

#: Rounds in which an assignment beneath the envelopes is improved.
_ROUNDS = 60

#: Places on the list of nodes that are kept for going depth first.
_RESERVE = 2000

#: Nodes between two looks at whether the inverse has drifted.
_LOOK = 16

#: How `visit` leaves a node: its box is empty; a cut shows that; the prices of a contradiction do; the prices show that
#: nothing cheaper is left; all sums are settled and no sets have them; an assignment was found that costs as much as
#: the bound; nothing here settles it; or it has children, by the total of worker known[HARDEST] or by its next request.
NO_BOX, NO_CUT, NO_POINT, NOT_CHEAPER, NO_SETS, REACHED, UNKNOWN, BY_TOTAL, BY_CLASS = range(9)

_ENDLESS = 1e300


@kernel
def advance(window: Window, search: Search, budget: int) -> int:
    """Search until everything is closed or `budget` is spent (units of about 1 microsecond).

    Returns DONE, OPEN (more budget may help) or STUCK (nodes are left that nothing here can close).
    """
    known = search.known
    if known[STARTED] == 0:
        begin(window, search)
    n = search.program.price.size
    stop = known[WORK] + budget
    while True:
        least, at = CLOSED, -1
        for i in range(known[NODES]):
            if search.nodes.bounds[i] < least:
                least, at = search.nodes.bounds[i], i
        known[BOUND] = max(known[BOUND], min(min(least, known[UNSETTLED]), known[COST]))
        if known[BOUND] >= known[COST]:
            return DONE
        if known[WORK] >= stop:
            return OPEN
        if at < 0 or known[NODES] + 3 > search.nodes.bounds.size:
            return STUCK
        if 0 <= known[PLUNGE] < known[NODES]:
            at = known[PLUNGE]
        elif known[NODES] + _RESERVE > search.nodes.bounds.size:
            at = known[NODES] - 1  # the list is nearly full: depth first, which hardly grows it
        known[PLUNGE] = -1
        pivots = known[PIVOTS]
        lb = take(known, search.nodes, search.box, at)
        if lb < known[COST]:
            visit(window, search, lb)
        known[WORK] += 15 + window.pool.v.size // 20 + (known[PIVOTS] - pivots) * (1 + n * n // 1500)


@kernel
def begin(window: Window, search: Search) -> None:
    """Open the root."""
    known, nodes = search.known, search.nodes
    for w in range(window.slots.size):
        nodes.low[0, w], nodes.high[0, w] = window.low[w], window.high[w]
        for q in range(nodes.first.shape[2]):
            nodes.first[0, w, q], nodes.last[0, w, q] = 0, window.pool.v.size - 1
    nodes.bounds[0] = 0
    known[NODES], known[STARTED], known[PLUNGE], known[UNSETTLED] = 1, 1, -1, CLOSED
    first_basis(window.profile, window.facts[WORKERS], search.program, window.low)


@kernel
def _relax(window: Window, search: Search, lb: int) -> tuple[int, int]:
    """Solve the relaxation of the node at hand, with cuts; return its state and the bound that is proved."""
    known, box, cuts, program, scratch = search.known, search.box, search.cuts, search.program, search.scratch
    pool, profile, slots, facts = window.pool, window.profile, window.slots, window.facts
    most = 100 + 4 * program.price.size
    last = known[PIVOTS] + 2 * most
    enough = float(known[COST] - facts[CONSTANT]) - 1.0 + 1e-4
    state = OPTIMAL
    fresh = False
    for _ in range(12 if known[VISITED] == 1 else 3):
        state, _value, row = optimise(profile, facts[WORKERS], program, box, cuts, known, enough, most)
        ray = row if state == EMPTY else -1
        lb = max(lb, exact_bound(profile, facts, program, box, cuts, ray, scratch))
        known[RAY] = ray
        if lb >= known[COST]:
            return state, lb
        if state == ABOVE:
            enough = _ENDLESS
        elif state == EMPTY or (known[VISITED] % _LOOK == 0 and not sound(profile, program, cuts)):
            if fresh:
                return state, lb
            fresh = True
            first_basis(profile, facts[WORKERS], program, box.low)
        elif (
            state != OPTIMAL
            or known[PIVOTS] > last
            or separate(pool, slots, facts[FORCED], box, cuts, program, known, scratch) == 0
        ):
            break
    return state, lb


@kernel
def visit(window: Window, search: Search, lb: int) -> int:
    """Close the node at hand, whose bound is lb, or open its children; return which of the above it was."""
    known, box, draft, nodes = search.known, search.box, search.draft, search.nodes
    pool, slots, facts = window.pool, window.slots, window.facts
    known[VISITED] += 1
    if not snap(pool, slots, box):
        return NO_BOX
    if not refresh(
        pool, slots, facts[FORCED], box, search.cuts, known[CUT_COUNT], search.program.right, search.scratch
    ):
        return NO_CUT
    state, lb = _relax(window, search, lb)
    if lb >= known[COST]:
        return NO_POINT if state == EMPTY else NOT_CHEAPER
    W = slots.size
    point = search.program.point[search.program.point.size - W :]
    for w in range(W):
        draft.goal[w] = min(max(round(point[w]), box.low[w]), box.high[w])
    w = impossible_total(pool, slots, box, point)
    state = GAVE_UP
    if w < 0:
        state, known[HARDEST] = assemble(pool, slots, window.order, facts[FORCED], box, draft, PATIENCE)
        if state == FOUND:
            offer(known, search.answer, draft.pattern, cost_of(window.profile, facts, draft.goal))
    if state != FOUND and (known[VISITED] * W <= _EAGER or known[VISITED] % 16 == 1):
        _look_near(window, search)
    if lb >= known[COST]:
        return REACHED
    giant = scarce(pool, slots, box, point) if known[VISITED] > _STRAIGHT else -1
    if giant >= 0:
        known[HARDEST] = giant
        k = box.most[giant]
        push(known, nodes, box, lb, giant, True, box.least[giant], k - 1)
        known[PLUNGE] = push(known, nodes, box, lb, giant, True, k, k)
        return BY_CLASS
    if w >= 0:
        known[HARDEST] = w
        known[PLUNGE] = beside(pool, slots, box, nodes, known, lb, w, point[w])
        return BY_TOTAL
    w = known[HARDEST]
    if state == FOUND or not can_split(slots, box, w):
        w = next_to_settle(slots, box)
    if w < 0:
        if state == GAVE_UP:
            known[UNSETTLED] = min(known[UNSETTLED], lb)
            return UNKNOWN
        return NO_SETS
    known[HARDEST] = w
    if slots[w] - box.fixed[w] > 1 and box.fixed[w] < box.first.shape[1]:
        known[PLUNGE] = around_class(pool, slots, box, nodes, draft, known, lb, w, search.scratch[0])
        return BY_CLASS
    s = draft.goal[w]
    push(known, nodes, box, lb, w, False, box.low[w], s - 1)
    push(known, nodes, box, lb, w, False, s + 1, box.high[w])
    known[PLUNGE] = push(known, nodes, box, lb, w, False, s, s)
    return BY_TOTAL


@kernel
def _look_near(window: Window, search: Search) -> None:
    """Look for an assignment near the sums in draft.goal, and for one beneath the envelopes of the point."""
    known, box, draft = search.known, search.box, search.draft
    pool, profile, slots = window.pool, window.profile, window.slots
    W = slots.size
    for turn in range(2):
        if turn == 0:
            filled = fill_near(pool, slots, window.order, draft, False, search.scratch)
        else:
            margins(profile, search.program.point, search.scratch[6])
            for w in range(W):
                search.scratch[7, w] = draft.goal[w]
                draft.goal[w] = min(max(search.scratch[6, w], box.low[w]), box.high[w])
            filled = fill_beneath(pool, slots, window.order, draft, _ROUNDS, search.scratch)
        if filled:
            cost = polish(pool, profile, slots, window.facts, draft, 3, search.scratch)
            offer(known, search.answer, draft.pattern, cost)
        known[WORK] += W * W // 5 + W * turn
    for w in range(W):
        draft.goal[w] = search.scratch[7, w]
