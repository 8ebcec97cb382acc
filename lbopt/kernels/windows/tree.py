"""Branch and bound over boxes of sums: the cheapest open node next, but a child of the last one while that is open.

A node is a box. Its sides are moved to totals that exist, its relaxation is solved with cuts, and then either nothing
cheaper than the best known is left in it, or some worker has a sum that it cannot have (two children, on both sides of
it), or all sums exist one by one: then exact sets are looked for. Where there are none, the largest request of the
worker that was hardest to serve is smaller than it could be, exactly that one, or larger.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.boxes import snap
from lbopt.kernels.windows.cuts import refresh, separate
from lbopt.kernels.windows.placing import cost_of, fill_near, offer
from lbopt.kernels.windows.polish import polish
from lbopt.kernels.windows.relaxation import ABOVE, EMPTY, OPTIMAL, exact_bound, first_basis, optimise, sound
from lbopt.kernels.windows.sets import FOUND, GAVE_UP, assemble, next_set
from lbopt.kernels.windows.sums import total_next_to
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

#: Nodes between two looks at whether the inverse has drifted.
_LOOK = 16

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
        known[WORK] += 15 + window.v.size // 20 + (known[PIVOTS] - pivots) * (1 + n * n // 1500)


@kernel
def _start(window: Window, search: Search) -> None:
    """Open the root."""
    known = search.known
    for w in range(window.slots.size):
        search.lows[0, w], search.highs[0, w] = window.low[w], window.high[w]
        for q in range(search.item_least.shape[1]):
            search.least[0, w, q], search.most[0, w, q] = 0, window.v.size - 1
    search.bounds[0] = 0
    known[NODES], known[STARTED], known[PLUNGE], known[UNSETTLED] = 1, 1, -1, CLOSED
    first_basis(window, search, window.low)


@kernel
def _close(search: Search, i: int) -> None:
    """Take node i off the list, and make it the one at hand."""
    last = search.known[NODES] - 1
    search.bounds[i] = search.bounds[last]
    for w in range(search.low.size):
        search.low[w], search.high[w] = search.lows[i, w], search.highs[i, w]
        search.lows[i, w], search.highs[i, w] = search.lows[last, w], search.highs[last, w]
        for q in range(search.item_least.shape[1]):
            search.item_least[w, q], search.item_most[w, q] = search.least[i, w, q], search.most[i, w, q]
            search.least[i, w, q], search.most[i, w, q] = search.least[last, w, q], search.most[last, w, q]
    search.known[NODES] = last


@kernel
def _open(search: Search, bound: int) -> int:
    """Put the node at hand on the list; return its number."""
    at = search.known[NODES]
    search.bounds[at] = bound
    for w in range(search.low.size):
        search.lows[at, w], search.highs[at, w] = search.low[w], search.high[w]
        for q in range(search.item_least.shape[1]):
            search.least[at, w, q], search.most[at, w, q] = search.item_least[w, q], search.item_most[w, q]
    search.known[NODES] = at + 1
    return at


@kernel
def _push_total(search: Search, bound: int, w: int, low: int, high: int) -> int:
    """Open the node at hand with other sides for worker w; return its number, -1 where they are empty."""
    if low > high:
        return -1
    at = _open(search, bound)
    search.lows[at, w], search.highs[at, w] = low, high
    return at


@kernel
def _push_class(search: Search, bound: int, w: int, least: int, most: int) -> int:
    """Open the node at hand with other classes for the next request of worker w; -1 where there are none."""
    if least > most:
        return -1
    at = _open(search, bound)
    q = search.fixed[w]
    search.least[at, w, q], search.most[at, w, q] = least, most
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
        if state == EMPTY or (known[VISITED] % _LOOK == 0 and not sound(window, search)):
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
    w = _impossible_sum(window, search)
    if w >= 0:
        if _now_and_then(search) and fill_near(window, search, sums):
            offer(window, search, polish(window, search, 3))
            if lb >= known[COST]:
                return
        _split_total(window, search, lb, w)
        return
    state = assemble(window, search, sums, PATIENCE)
    if state == FOUND:
        offer(window, search, cost_of(window, sums))
    elif _now_and_then(search) and fill_near(window, search, sums):
        offer(window, search, polish(window, search, 3))
    if lb >= known[COST]:
        return
    w = known[FIXED_AT]
    if state == FOUND or not _can_split(window, search, w):
        w = _next_to_settle(window, search)
    if w < 0:
        if state == GAVE_UP:
            known[UNSETTLED] = min(known[UNSETTLED], lb)
    elif window.slots[w] - search.fixed[w] > 1 and search.fixed[w] < search.item_least.shape[1]:
        _split_class(window, search, lb, w)
    else:
        s = sums[w]
        _push_total(search, lb, w, low[w], s - 1)
        _push_total(search, lb, w, s + 1, high[w])
        known[PLUNGE] = _push_total(search, lb, w, s, s)


@kernel
def _split_total(window: Window, search: Search, lb: int, w: int) -> None:
    """Open two children: worker w has a total below that of the point, or above it; the nearer one goes on."""
    known = search.known
    s = search.point[window.peak.shape[1] + w]
    below = total_next_to(window, search, w, _floor(s), False)
    above = total_next_to(window, search, w, _floor(s) + 1, True)
    if above < 0 or (below >= 0 and s - below < above - s):
        if above >= 0:
            _push_total(search, lb, w, above, search.high[w])
        known[PLUNGE] = _push_total(search, lb, w, search.low[w], below)
    else:
        if below >= 0:
            _push_total(search, lb, w, search.low[w], below)
        known[PLUNGE] = _push_total(search, lb, w, above, search.high[w])


@kernel
def _split_class(window: Window, search: Search, lb: int, w: int) -> None:
    """Open three children: the next request of worker w is smaller than one it could have, that one, or larger."""
    least, most = search.least_next[w], search.most_next[w]
    row, left = search.scratch[0], search.left
    for k in range(window.v.size):
        left[k] = search.avail[k]
    free = window.slots[w] - search.fixed[w]
    rest = search.rounded[w] - search.held[w]
    state, _ = next_set(window.v, window.small, left, free, most, rest, row, True, PATIENCE)
    k = row[0] if state == FOUND else (least + most) // 2
    k = min(max(k, least), most)
    _push_class(search, lb, w, k + 1, most)
    _push_class(search, lb, w, least, k - 1)
    search.known[PLUNGE] = _push_class(search, lb, w, k, k)


@kernel
def _can_split(window: Window, search: Search, w: int) -> bool:
    """Return whether something about worker w is open that a branch can settle."""
    if search.low[w] < search.high[w]:
        return True
    return search.fixed[w] < min(window.slots[w], search.item_least.shape[1])


@kernel
def _now_and_then(search: Search) -> bool:
    """Return whether this is a node at which an assignment near its sums is looked for."""
    return search.known[VISITED] <= 30 or search.known[VISITED] % 16 == 0


@kernel
def _next_to_settle(window: Window, search: Search) -> int:
    """Return the worker of fewest slots left, then with the smallest box, that can be split; -1 for none."""
    low, high = search.low, search.high
    chosen = -1
    for w in range(low.size):
        if _can_split(window, search, w):
            left = window.slots[w] - search.fixed[w]
            least = 0 if chosen < 0 else window.slots[chosen] - search.fixed[chosen]
            if chosen < 0 or left < least or (left == least and high[w] - low[w] < high[chosen] - low[chosen]):
                chosen = w
    return chosen


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
        below = total_next_to(window, search, w, whole, False)
        if below >= 0 and s - below < 1e-3:
            continue
        above = total_next_to(window, search, w, whole + 1, True)
        distance = min(s - below if below >= 0 else _ENDLESS, above - s if above >= 0 else _ENDLESS)
        if distance > worst:
            worst, chosen = distance, w
    return chosen
