"""Depth-first search over near-optimal patterns: a solution that admits at least `target`, or the proof of none.

The workers that could be listed (`near_optimal`) are decided one after the other, always the one with fewest patterns
left; a pattern is left when its requests are still there and its loss fits the budget once every undecided worker has
been charged its least loss. When all listed workers are decided, each of the others takes the best pattern among the
requests that are left. Every leaf is a feasible assignment, and the best one is kept.

A descent that has used up its nodes can be continued: everything it needs is in arrays.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.state import Search, Step

_UNDECIDED, _UNLISTED = -1, -2


@kernel
def _fewest(
    budget: int,
    decided: Ints,
    first: Ints,
    last: Ints,
    items: Ints,
    loss: Ints,
    slots: Ints,
    avail: Ints,
    least: Ints,
    viable: Ints,
) -> tuple[int, int]:
    """Return the undecided listed worker with fewest viable patterns, and what the budget leaves beyond least losses.

    A worker of -1 means that all are decided; a negative spare means that the branch is dead.

    Parameters
    ----------
    budget
        What the undecided workers may lose, 1/scale tokens.
    decided, slots
        int64 (W,): row of a worker's pattern, -1 = undecided, -2 = not listed; slots.
    first, last
        int64 (W,): rows of each worker.
    items, loss
        int64 (R, Q) and (R,): classes of a row; what it loses, 1/scale tokens, ascending for each worker.
    avail
        int64 (K,): requests left.
    least, viable
        int64 (W,) and (R,), written: least loss of an undecided worker; whether a row is still possible.
    """
    spare = budget
    for w in range(slots.size):
        if decided[w] != _UNDECIDED:
            continue
        c = slots[w]
        low = -1
        for j in range(first[w], last[w]):
            if loss[j] > budget:
                break  # ascending losses
            free = _free(items, j, c, avail)
            viable[j] = 1 if free else 0
            if free and low < 0:
                low = loss[j]
        spare -= low
        if low < 0 or spare < 0:
            return w, -1
        least[w] = low
    chosen, fewest = -1, 1 << 62
    for w in range(slots.size):
        if decided[w] != _UNDECIDED:
            continue
        count = 0
        most = spare + least[w]
        for j in range(first[w], last[w]):
            if loss[j] > most:
                break
            count += viable[j]
        if count < fewest:
            chosen, fewest = w, count
    return chosen, spare


@kernel
def _free(items: Ints, j: int, c: int, avail: Ints) -> bool:
    """Whether the requests of pattern j, one of c slots, are all left.

    Parameters
    ----------
    items, j
        int64 (R, Q): classes of each row; the row.
    c
        Slots.
    avail
        int64 (K,): requests left.
    """
    for q in range(c):
        k = items[j, q]
        if avail[k] < c:
            same = 0
            for r in range(c):
                if items[j, r] == k:
                    same += 1
            if same > avail[k]:
                return False
    return True


@kernel
def start_descent(step: Step, search: Search, budget: int) -> None:
    """Put all listed workers back to undecided; `budget` is what an assignment may lose in all (1/scale tokens)."""
    descent = search.descent
    decided, left, avail, state = descent.decided, descent.left, descent.avail, descent.state
    for k in range(step.v.size):
        avail[k] = step.n[k]
    for w in range(step.load.size):
        decided[w] = _UNDECIDED if search.first[w] >= 0 else _UNLISTED
    state.depth, state.fresh, state.best, state.settled = 0, 1, -1, 1
    left[state.depth] = budget


@kernel
def descend(step: Step, search: Search, M: int, target: int, nodes: int) -> tuple[int, int, int]:
    """Go on with a descent at envelope M for an assignment that admits at least `target` tokens, for so many nodes.

    Takes the lists of `list_all` and search.price. The best leaf is in search.spare[w, :slots[w]].

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    M
        Envelope, tokens.
    target, nodes
        Tokens to be admitted; nodes that may be used.

    Returns
    -------
    state, tokens, nodes
        1 = found, 0 = there is none, -1 = open (nodes used up, or a leaf failed at a worker that is not listed);
        the most tokens of any leaf (-1 for none); nodes left.
    """
    slots, first, last, items, loss = step.slots, search.first, search.last, search.items, search.loss
    descent = search.descent
    avail, state, decided, least = descent.avail, descent.state, descent.decided, descent.least
    order, cursor, most, left = descent.order, descent.cursor, descent.most, descent.left
    W = slots.size
    unlisted = False
    for w in range(W):
        unlisted = unlisted or decided[w] == _UNLISTED
    depth, fresh = state.depth, state.fresh == 1
    while depth >= 0:
        if fresh:
            if nodes == 0 or used_up(search.known):
                state.depth, state.fresh = depth, 1
                return -1, state.best, 0
            nodes -= 1
            w, spare = _fewest(left[depth], decided[:W], first, last, items, loss, slots, avail, least, search.viable)
            if w < 0:
                tokens = fill(step, search, M, avail, decided, search.leaf)
                if tokens > state.best:
                    state.best = tokens
                    for u in range(W):
                        for q in range(slots[u]):
                            search.spare[u, q] = search.leaf[u, q]
                    if tokens >= target:
                        return 1, tokens, nodes
                if unlisted:
                    state.settled = 0
            if w < 0 or spare < 0:
                depth -= 1
                fresh = False
                continue
            order[depth], cursor[depth], most[depth] = w, first[w], spare + least[w]
        w = order[depth]
        c = slots[w]
        if decided[w] >= 0:
            for q in range(c):
                avail[items[decided[w], q]] += 1
            decided[w] = _UNDECIDED
        j = cursor[depth]
        while j < last[w] and loss[j] <= most[depth] and not _free(items, j, c, avail):
            j += 1
        fresh = j < last[w] and loss[j] <= most[depth]
        if fresh:
            for q in range(c):
                avail[items[j, q]] -= 1
            decided[w] = j
            cursor[depth] = j + 1
            left[depth + 1] = left[depth] - loss[j]
            depth += 1
        else:
            depth -= 1
    return 0 if state.settled == 1 else -1, state.best, nodes
