"""Branch and bound over boxes of sums: the cheapest open node next, but a child of the last one while that is open.

A node is a box. Its sides are moved to totals that exist, its relaxation is solved with cuts, and then either nothing
cheaper than the best known is left in it, or some worker has a sum that it cannot have (two children, on both sides of
it), or all sums exist one by one: then exact sets are looked for. Where there are none, the largest request of the
worker that was hardest to serve is smaller than it could be, exactly that one, or larger.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.known_ends.placing import offer
from lbopt.kernels.windows.boxes import snap
from lbopt.kernels.windows.branching import (
    around_class,
    beside,
    can_split,
    impossible_total,
    next_to_settle,
    push,
    scarce,
    take,
)
from lbopt.kernels.windows.cuts import refresh, separate
from lbopt.kernels.windows.placing import fill_beneath, fill_near, margins
from lbopt.kernels.windows.polish import polish
from lbopt.kernels.windows.relaxation import ABOVE, EMPTY, OPTIMAL, exact_bound, first_basis, optimise, sound
from lbopt.kernels.windows.sets import FOUND, GAVE_UP, PATIENCE, assemble
from lbopt.kernels.windows.state import CLOSED, DONE, OPEN, STUCK, Search, Window

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
#: the bound; nothing here settles it; or it has children, by the total of progress.worker or by its next request.
NO_BOX, NO_CUT, NO_POINT, NOT_CHEAPER, NO_SETS, REACHED, UNKNOWN, BY_TOTAL, BY_CLASS = range(9)

_INFINITY = 1e300

#: How often the steps for the sets of one node are doubled, to 1.5 million; steps in a microsecond.
DOUBLINGS, _STEPS = 9, 10


@kernel
def advance(window: Window, search: Search, budget: int) -> int:
    """Search until everything is closed or `budget` is spent (units of about 1 microsecond).

    Returns DONE, OPEN (more budget may help) or STUCK (nodes are left that nothing here can close).
    """
    progress = search.progress
    if progress.started == 0:
        begin(window, search)
    n = search.program.price.size
    stop = progress.work + budget
    while True:
        least, at = CLOSED, -1
        for i in range(progress.open_nodes):
            if search.nodes.bounds[i] < least:
                least, at = search.nodes.bounds[i], i
        progress.bound = max(progress.bound, min(min(least, progress.unsettled), progress.cost))
        if progress.bound >= progress.cost:
            return DONE
        if progress.work >= stop or (progress.visited > 0 and out_of_time(progress)):
            return OPEN
        if at < 0 or progress.open_nodes + 3 > search.nodes.bounds.size:
            return STUCK
        if 0 <= progress.next_node < progress.open_nodes:
            at = progress.next_node
        elif progress.open_nodes + _RESERVE > search.nodes.bounds.size:
            at = progress.open_nodes - 1  # the list is nearly full: depth first, which hardly grows it
        progress.next_node = -1
        pivots = progress.pivots
        lb = take(progress, search.nodes, search.box, at)
        if lb < progress.cost:
            visit(window, search, lb)
        progress.work += 15 + window.pool.v.size // 20 + (progress.pivots - pivots) * (1 + n * n // 1500)


@kernel
def begin(window: Window, search: Search) -> None:
    """Open the root."""
    progress, nodes = search.progress, search.nodes
    root = 0
    for w in range(window.slots.size):
        nodes.low[root, w], nodes.high[root, w] = window.low[w], window.high[w]
        for q in range(nodes.first.shape[2]):
            nodes.first[root, w, q], nodes.last[root, w, q] = 0, window.pool.v.size - 1
    nodes.bounds[root] = 0
    progress.open_nodes, progress.started, progress.next_node, progress.unsettled = 1, 1, -1, CLOSED
    first_basis(window.profile, search.program, window.low)


@kernel
def _relax(window: Window, search: Search, lb: int) -> tuple[int, int]:
    """Solve the relaxation of the node at hand, with cuts; return its state and the bound that is proved."""
    progress, box, cuts, program, scratch = search.progress, search.box, search.cuts, search.program, search.scratch
    pool, profile, slots = window.pool, window.profile, window.slots
    most = 100 + 4 * program.price.size
    last = progress.pivots + 2 * most
    enough = float(progress.cost - profile.constant) - 1.0 + 1e-4
    state = OPTIMAL
    fresh = False
    for _ in range(12 if progress.visited == 1 else 3):
        state, _value, row = optimise(profile, program, box, cuts, progress, enough, most)
        ray = row if state == EMPTY else -1
        lb = max(lb, exact_bound(profile, program, box, cuts, ray, scratch))
        progress.empty_row = ray
        if lb >= progress.cost:
            return state, lb
        if state == ABOVE:
            enough = _INFINITY
        elif state == EMPTY or (progress.visited % _LOOK == 0 and not sound(profile, program, cuts)):
            if fresh:
                return state, lb
            fresh = True
            first_basis(profile, program, box.low)
        elif (
            state != OPTIMAL
            or progress.pivots > last
            or out_of_time(progress)
            or separate(pool, slots, box, cuts, program, progress, scratch) == 0
        ):
            break
    return state, lb


@kernel
def visit(window: Window, search: Search, lb: int) -> int:
    """Close the node at hand, whose bound is lb, or open its children; return which of the above it was."""
    progress, box, draft, nodes = search.progress, search.box, search.draft, search.nodes
    pool, slots = window.pool, window.slots
    progress.visited += 1
    if not snap(pool, slots, box):
        return NO_BOX
    if not refresh(pool, slots, box, search.cuts, progress.cuts, search.program.right, search.scratch.demand):
        return NO_CUT
    state, lb = _relax(window, search, lb)
    if lb >= progress.cost:
        return NO_POINT if state == EMPTY else NOT_CHEAPER
    W = slots.size
    point = search.program.point[search.program.point.size - W :]
    for w in range(W):
        draft.goal[w] = min(max(round(point[w]), box.low[w]), box.high[w])
    w = impossible_total(pool, slots, box, point)
    state = GAVE_UP
    if w < 0 and not out_of_time(progress):
        state, progress.worker = assemble(pool, slots, window.order, box, draft, PATIENCE << progress.doubled)
        progress.work += (PATIENCE << progress.doubled) // _STEPS if state == GAVE_UP and progress.doubled > 0 else 0
        if state == FOUND:
            offer(progress, search.answer, draft.pattern, polish(window, draft, 0, search.scratch, progress))
    if state != FOUND and (progress.visited * W <= _EAGER or progress.visited % 16 == 1):
        _look_near(window, search)
    if lb >= progress.cost:
        return REACHED
    giant = scarce(pool, slots, box, point) if progress.visited > _STRAIGHT else -1
    if giant >= 0:
        progress.worker = giant
        k = box.most[giant]
        push(progress, nodes, box, lb, giant, True, box.least[giant], k - 1)
        progress.next_node = push(progress, nodes, box, lb, giant, True, k, k)
        return BY_CLASS
    if w >= 0:
        progress.worker = w
        progress.next_node = beside(pool, slots, box, nodes, progress, lb, w, point[w])
        return BY_TOTAL
    w = progress.worker
    if state == FOUND or not can_split(slots, box, w):
        w = next_to_settle(slots, box)
    if w < 0:
        if state == GAVE_UP and progress.doubled < DOUBLINGS:  # nothing is left to branch on: the same with more steps
            progress.doubled += 1
            same = progress.worker
            push(progress, nodes, box, lb, same, False, box.low[same], box.high[same])
            return UNKNOWN
        if state == GAVE_UP:
            progress.unsettled = min(progress.unsettled, lb)
            return UNKNOWN
        return NO_SETS
    progress.worker = w
    if slots[w] - box.fixed[w] > 1 and box.fixed[w] < box.first.shape[1]:
        progress.next_node = around_class(window, search, lb, w)
        return BY_CLASS
    s = draft.goal[w]
    push(progress, nodes, box, lb, w, False, box.low[w], s - 1)
    push(progress, nodes, box, lb, w, False, s + 1, box.high[w])
    progress.next_node = push(progress, nodes, box, lb, w, False, s, s)
    return BY_TOTAL


@kernel
def _look_near(window: Window, search: Search) -> None:
    """Look for an assignment near the sums in draft.goal, and for one beneath the envelopes of the point."""
    progress, box, draft, scratch = search.progress, search.box, search.draft, search.scratch
    pool, profile, slots = window.pool, window.profile, window.slots
    W = slots.size
    for turn in range(2):
        if turn == 0:
            filled = fill_near(pool, slots, window.order, draft, False, scratch)
        else:
            margins(profile, search.program.point, scratch.margin)
            for w in range(W):
                scratch.goal[w] = draft.goal[w]
                draft.goal[w] = min(max(scratch.margin[w], box.low[w]), box.high[w])
            filled = fill_beneath(pool, slots, window.order, draft, _ROUNDS, scratch)
        if filled:
            cost = polish(window, draft, 3, scratch, progress)
            offer(progress, search.answer, draft.pattern, cost)
        progress.work += W * W // 5 + W * turn
    for w in range(W):
        draft.goal[w] = scratch.goal[w]
