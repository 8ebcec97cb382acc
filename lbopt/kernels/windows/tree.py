"""Branch and bound over boxes of sums: the cheapest open node next, but a child of the last one while that is open.

A node is a box. Its sides are moved to totals that exist, its relaxation is solved with cuts, and then either nothing
cheaper than the best known is left in it, or some worker has a sum that it cannot have (two children, on both sides of
it), or all sums exist one by one: then exact sets are looked for. Where there are none, the worker that was hardest to
serve has less, exactly that, or more.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.cuts import refresh, separate
from lbopt.kernels.windows.placing import cost_of, fill_near, offer
from lbopt.kernels.windows.polish import polish
from lbopt.kernels.windows.relaxation import ABOVE, EMPTY, OPTIMAL, exact_bound, first_basis, optimise, sound
from lbopt.kernels.windows.sets import FOUND, GAVE_UP, assemble
from lbopt.kernels.windows.sums import snap, total_at_least, total_at_most
from lbopt.kernels.windows.terms import (
    BOUND,
    CLOSED,
    CONSTANT,
    COST,
    DONE,
    FIXED_AT,
    NODES,
    OPEN,
    PIVOTS,
    PLUNGE,
    STARTED,
    STUCK,
    UNSETTLED,
    VISITED,
    WORK,
    Search,
    Window,
)

#: Steps of the search for exact sets before it gives up: at most a few milliseconds.
PATIENCE = 3000

_ENDLESS = 1e300


@kernel
def advance(window: Window, search: Search, budget: int) -> int:
    """Search until everything is closed or `budget` is spent (units of about 1 microsecond).

    Returns DONE, OPEN (more budget may help) or STUCK (nodes are left that nothing here can close).
    """
    known = search.known
    if known[STARTED] == 0:
        _start(window, search)
    stop = known[WORK] + budget
    while True:
        least, at = CLOSED, -1
        for i in range(known[NODES]):
            if search.bounds[i] < least:
                least, at = search.bounds[i], i
        known[BOUND] = max(known[BOUND], min(min(least, known[UNSETTLED]), known[COST]))
        if known[BOUND] >= known[COST]:
            return DONE
        if known[WORK] >= stop:
            return OPEN
        if at < 0 or known[NODES] + 3 > search.bounds.size:
            return STUCK
        if 0 <= known[PLUNGE] < known[NODES]:
            at = known[PLUNGE]
        known[PLUNGE] = -1
        pivots = known[PIVOTS]
        _visit(window, search, at)
        n = window.peak.shape[0] + window.peak.shape[1]
        known[WORK] += 4 + (known[PIVOTS] - pivots) * (1 + n * n // 3000) + window.v.size // 100


@kernel
def _start(window: Window, search: Search) -> None:
    """Open the root."""
    known = search.known
    for w in range(window.slots.size):
        search.lows[0, w], search.highs[0, w] = window.low[w], window.high[w]
        search.low[w], search.high[w] = window.low[w], window.high[w]
    search.bounds[0] = 0
    known[NODES], known[STARTED], known[PLUNGE], known[UNSETTLED] = 1, 1, -1, CLOSED
    first_basis(window, search, window.low)


@kernel
def _close(search: Search, i: int) -> None:
    """Take node i off the list."""
    last = search.known[NODES] - 1
    search.bounds[i] = search.bounds[last]
    for w in range(search.low.size):
        search.lows[i, w], search.highs[i, w] = search.lows[last, w], search.highs[last, w]
    search.known[NODES] = last


@kernel
def _push(search: Search, bound: int, w: int, low: int, high: int) -> int:
    """Open the node at hand with another box of worker w; return its number, -1 where the box is empty."""
    if low > high:
        return -1
    at = search.known[NODES]
    search.bounds[at] = bound
    for u in range(search.low.size):
        search.lows[at, u], search.highs[at, u] = search.low[u], search.high[u]
    search.lows[at, w], search.highs[at, w] = low, high
    search.known[NODES] = at + 1
    return at


@kernel
def _relax(window: Window, search: Search, lb: int) -> tuple[int, int]:
    """Solve the relaxation of the node at hand, with cuts; return the state and the bound that is proved."""
    known = search.known
    W, T = window.peak.shape
    most = 100 + 6 * (W + T)
    enough = float(known[COST] - window.facts[CONSTANT]) - 1.0 + 1e-4
    state = OPTIMAL
    fresh = False
    for _turn in range(12 if known[VISITED] == 1 else 3):
        state, _value, row = optimise(window, search, enough, most)
        if state == EMPTY:
            if exact_bound(window, search, row) == CLOSED:
                return state, CLOSED
        else:
            lb = max(lb, exact_bound(window, search, -1))
            if lb >= known[COST]:
                return state, lb
            if state == ABOVE:
                enough = _ENDLESS
                continue
        if not sound(window, search) or state == EMPTY:
            if fresh:
                return state, lb
            fresh = True
            first_basis(window, search, search.low)
            continue
        if state != OPTIMAL or separate(window, search) == 0:
            break
    return state, lb


@kernel
def _visit(window: Window, search: Search, i: int) -> None:
    """Close node i, or put its children in its place."""
    known, low, high, point = search.known, search.low, search.high, search.point
    W, T = window.peak.shape
    lb = search.bounds[i]
    for w in range(W):
        low[w], high[w] = search.lows[i, w], search.highs[i, w]
    _close(search, i)
    known[VISITED] += 1
    if lb >= known[COST] or not snap(window, search) or not refresh(window, search):
        return
    state, lb = _relax(window, search, lb)
    if lb >= known[COST]:
        return
    sums = search.rounded
    for w in range(W):
        sums[w] = min(max(round(point[T + w]), low[w]), high[w])
    chosen = _impossible_sum(window, search)
    if chosen >= 0:
        if (known[VISITED] <= 30 or known[VISITED] % 16 == 0) and fill_near(window, search, sums):
            offer(window, search, polish(window, search, 3))
            if lb >= known[COST]:
                return
        s = point[T + chosen]
        below = total_at_most(window, search.avail, chosen, _floor(s))
        above = total_at_least(window, search.avail, chosen, _floor(s) + 1)
        if s - below < above - s:
            _push(search, lb, chosen, above, high[chosen])
            known[PLUNGE] = _push(search, lb, chosen, low[chosen], below)
        else:
            _push(search, lb, chosen, low[chosen], below)
            known[PLUNGE] = _push(search, lb, chosen, above, high[chosen])
        return
    state = assemble(window, search, sums, PATIENCE)
    if state == FOUND:
        offer(window, search, cost_of(window, sums))
        if lb >= known[COST]:
            return
    elif fill_near(window, search, sums):
        offer(window, search, polish(window, search, 3))
        if lb >= known[COST]:
            return
    chosen = known[FIXED_AT]
    if state == FOUND or low[chosen] == high[chosen]:
        chosen = -1
        for w in range(W):
            if low[w] < high[w] and (chosen < 0 or high[w] - low[w] < high[chosen] - low[chosen]):
                chosen = w
    if chosen < 0:
        if state == GAVE_UP:
            known[UNSETTLED] = min(known[UNSETTLED], lb)
        return
    s = sums[chosen]
    _push(search, lb, chosen, low[chosen], s - 1)
    _push(search, lb, chosen, s + 1, high[chosen])
    known[PLUNGE] = _push(search, lb, chosen, s, s)


@kernel
def _floor(s: float) -> int:
    """Return the whole tokens of a sum, which may be a rounding error below them."""
    return int(s + 1e-4) if s >= 0 else 0


@kernel
def _impossible_sum(window: Window, search: Search) -> int:
    """Return the worker whose sum at the point is farthest from what it can have, -1 where all are possible."""
    W, T = window.peak.shape
    worst, chosen = 1e-3, -1
    for w in range(W):
        if search.low[w] == search.high[w]:
            continue
        s = search.point[T + w]
        whole = _floor(s)
        below = total_at_most(window, search.avail, w, whole)
        if s - below < 1e-3:
            continue
        above = total_at_least(window, search.avail, w, whole + 1)
        distance = min(s - below, above - s)
        if distance > worst:
            worst, chosen = distance, w
    return chosen
