"""Open nodes, each a bound and a box; which worker is branched on, and how: by its total or by its next request."""

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.boxes import total_next_to
from lbopt.kernels.windows.sets import FOUND, PATIENCE, next_set
from lbopt.kernels.windows.state import Box, Nodes, Pool, Search, Window


@kernel
def take(progress: Record, nodes: Nodes, box: Box, i: int) -> int:
    """Take node i off the list, make it the one at hand, and return its bound.

    Parameters
    ----------
    i
        Number of the node.
    """
    last = progress.open_nodes - 1
    bound = nodes.bounds[i]
    nodes.bounds[i] = nodes.bounds[last]
    for w in range(box.low.size):
        box.low[w], box.high[w] = nodes.low[i, w], nodes.high[i, w]
        nodes.low[i, w], nodes.high[i, w] = nodes.low[last, w], nodes.high[last, w]
        for q in range(box.first.shape[1]):
            box.first[w, q], box.last[w, q] = nodes.first[i, w, q], nodes.last[i, w, q]
            nodes.first[i, w, q], nodes.last[i, w, q] = nodes.first[last, w, q], nodes.last[last, w, q]
    progress.open_nodes = last
    return bound


@kernel
def push(progress: Record, nodes: Nodes, box: Box, bound: int, w: int, by_class: bool, first: int, last: int) -> int:
    """Open the node at hand with other sides for worker w, or (by_class) other classes for its next request.

    Returns its number, -1 where first..last is empty.

    Parameters
    ----------
    w, by_class, first, last
        The worker; whether `first`..`last` are classes of its next request, or else tokens of its total.
    """
    if first > last:
        return -1
    at = progress.open_nodes
    nodes.bounds[at] = bound
    for u in range(box.low.size):
        nodes.low[at, u], nodes.high[at, u] = box.low[u], box.high[u]
        for q in range(box.first.shape[1]):
            nodes.first[at, u, q], nodes.last[at, u, q] = box.first[u, q], box.last[u, q]
    if by_class:
        nodes.first[at, w, box.fixed[w]], nodes.last[at, w, box.fixed[w]] = first, last
    else:
        nodes.low[at, w], nodes.high[at, w] = first, last
    progress.open_nodes = at + 1
    return at


_INFINITY = 1e300


@kernel
def beside(pool: Pool, slots: Ints, box: Box, nodes: Nodes, progress: Record, lb: int, w: int, s: float) -> int:
    """Open two children: worker w has a total below s, or above it; return the nearer one, which goes on.

    Parameters
    ----------
    w, s
        The worker and its sum at the point of the relaxation, tokens.
    """
    below = total_next_to(pool, slots, box, w, _floor(s), False)
    above = total_next_to(pool, slots, box, w, _floor(s) + 1, True)
    if above < 0 or (below >= 0 and s - below < above - s):
        nearer, farther = (box.low[w], below), (above, box.high[w] if above >= 0 else -2)
    else:
        nearer, farther = (above, box.high[w]), (box.low[w], below)
    push(progress, nodes, box, lb, w, False, farther[0], farther[1])
    return push(progress, nodes, box, lb, w, False, nearer[0], nearer[1])


@kernel
def around_class(window: Window, search: Search, lb: int, w: int) -> int:
    """Open three children: the next request of worker w is larger than one it could have, smaller, or that one.

    `lb` bounds them. Returns the number of the child that goes on.
    """
    pool, box, draft, progress, nodes = window.pool, search.box, search.draft, search.progress, search.nodes
    first, last = box.least[w], box.most[w]
    for k in range(pool.v.size):
        draft.left[k] = box.avail[k]
    rest = draft.goal[w] - box.held[w]
    row, free = search.scratch.row, window.slots[w] - box.fixed[w]
    state, _ = next_set(pool, draft.left, free, last, rest, row, True, PATIENCE)
    k = row[0] if state == FOUND else (first + last) // 2  # a set is written largest class first
    k = min(max(k, first), last)
    push(progress, nodes, box, lb, w, True, k + 1, last)
    push(progress, nodes, box, lb, w, True, first, k - 1)
    return push(progress, nodes, box, lb, w, True, k, k)


@kernel
def can_split(slots: Ints, box: Box, w: int) -> bool:
    """Return whether something about worker w is open that a branch can settle."""
    return box.low[w] < box.high[w] or box.fixed[w] < min(slots[w], box.first.shape[1])


@kernel
def next_to_settle(slots: Ints, box: Box) -> int:
    """Return the worker of fewest slots left, then with the smallest box, that can be split; -1 for none."""
    low, high = box.low, box.high
    chosen = -1
    for w in range(low.size):
        if can_split(slots, box, w):
            left = slots[w] - box.fixed[w]
            fewest = slots[chosen] - box.fixed[chosen]
            if chosen < 0 or left < fewest or (left == fewest and high[w] - low[w] < high[chosen] - low[chosen]):
                chosen = w
    return chosen


@kernel
def scarce(pool: Pool, slots: Ints, box: Box, point: Floats) -> int:
    """Return the worker most likely to take the largest request left, -1 where that is no question of its own.

    It is one where that request is much larger than the next one: the relaxation gives a bit of it to every worker.

    Parameters
    ----------
    point
        (W,) float64, sums of the relaxation, tokens.
    """
    k = pool.v.size - 1
    while k > 0 and box.avail[k] == 0:
        k -= 1
    if box.avail[k] != 1:
        return -1
    below = k - 1
    while below > 0 and box.avail[below] == 0:
        below -= 1
    if below < 0 or 2 * pool.v[k] < 3 * pool.v[below]:
        return -1
    chosen = -1
    for w in range(slots.size):
        if (
            box.most[w] == k
            and box.least[w] < k
            and box.fixed[w] < min(slots[w], box.first.shape[1])
            and (chosen < 0 or point[w] > point[chosen])
        ):
            chosen = w
    return chosen


@kernel
def _floor(s: float) -> int:
    """Return the whole tokens of a sum, which may be a rounding error below them."""
    return int(s + 1e-4) if s >= 0 else 0


@kernel
def impossible_total(pool: Pool, slots: Ints, box: Box, point: Floats) -> int:
    """Return the worker whose sum at the point is farthest from what it can have, -1 where all are possible.

    Parameters
    ----------
    point
        (W,) float64, sums of the relaxation, tokens.
    """
    worst, chosen = 1e-3, -1
    for w in range(slots.size):
        if box.low[w] == box.high[w]:
            continue
        s = point[w]
        whole = _floor(s)
        below = total_next_to(pool, slots, box, w, whole, False)
        if below >= 0 and s - below < 1e-3:
            continue
        above = total_next_to(pool, slots, box, w, whole + 1, True)
        distance = min(s - below if below >= 0 else _INFINITY, above - s if above >= 0 else _INFINITY)
        if distance > worst:
            worst, chosen = distance, w
    return chosen
