"""Depth-first search over near-optimal patterns: a solution that admits at least `target`, or the proof of none.

The workers that could be listed (`near_optimal`) are decided one after the other, always the one with fewest patterns
left; a pattern is left when its requests are still there and its loss fits the budget once every undecided worker has
been charged its least loss. When all listed workers are decided, each of the others takes the best pattern among the
requests that are left. Every leaf is a feasible assignment, and the best one is kept.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.fill import fill



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
    """
    spare = budget
    for w in range(slots.size):
        if decided[w] != -1:
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
        if decided[w] != -1:
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
def _take(items: Ints, row: int, c: int, avail: Ints, copies: int) -> None:
    for q in range(c):
        avail[items[row, q]] -= copies


@kernel
def descend(
    M: int,
    scale: int,
    budget: int,
    target: int,
    nodes: int,
    v: Ints,
    n: Ints,
    price: Ints,
    load: Ints,
    slots: Ints,
    rank: Ints,
    first: Ints,
    last: Ints,
    items: Ints,
    loss: Ints,
    viable: Ints,
    work: Ints,
    classes: Ints,
    pattern: Ints,
    chosen: Ints,
) -> tuple[int, int, int]:
    """Search for an assignment that admits at least `target` tokens at envelope M.

    Workers with first[w] >= 0 are listed: rows first[w]..last[w] of items and loss, ascending in loss. `work` is
    scratch, (6, W + 2); `classes` and `pattern` are scratch, (6, K) and (W, 3 Q + 4). chosen[w, :slots[w]] receives the
    best leaf.

    Returns
    -------
    state, tokens, nodes
        1 = found, 0 = there is none, -1 = open (node limit, or a leaf failed at a worker that is not listed);
        the most tokens of any leaf (-1 for none); nodes left.
    """
    W, K = load.size, v.size
    decided, least, order, cursor, most, left = work[0], work[1], work[2], work[3], work[4], work[5]
    avail, p, best, sums, now = classes[0], classes[1], classes[2], classes[3], classes[4]
    lowest = 0
    for k in range(K):
        avail[k] = n[k]
        p[k] = scale * v[k] - price[k]
        lowest = min(lowest, price[k])
    for w in range(W):
        decided[w] = -1 if first[w] >= 0 else -2
    top = -1
    complete = True
    depth = 0
    left[0] = budget
    fresh = True
    while True:
        if fresh:
            nodes -= 1
            if nodes < 0:
                return -1, top, 0
            w, spare = _fewest(left[depth], decided, first, last, items, loss, slots, avail, least, viable)
            if w < 0:
                tokens = fill(
                    M, scale, lowest, v, p, avail, load, slots, rank, decided, items, pattern, best, sums, now
                )
                if tokens > top:
                    top = tokens
                    _copy(pattern, chosen, slots)
                    if tokens >= target:
                        return 1, top, nodes
                for u in range(W):
                    if decided[u] == -2:
                        complete = False
            if w < 0 or spare < 0:
                depth -= 1
            else:
                order[depth], cursor[depth], most[depth] = w, first[w], spare + least[w]
        if depth < 0:
            break
        w = order[depth]
        c = slots[w]
        if decided[w] >= 0:
            _take(items, decided[w], c, avail, -1)
            decided[w] = -1
        j = cursor[depth]
        while j < last[w] and loss[j] <= most[depth] and not _free(items, j, c, avail):
            j += 1
        if j < last[w] and loss[j] <= most[depth]:
            _take(items, j, c, avail, 1)
            decided[w] = j
            cursor[depth] = j + 1
            left[depth + 1] = left[depth] - loss[j]
            depth += 1
            fresh = True
        else:
            depth -= 1
            fresh = False
            if depth < 0:
                break
    return 0 if complete else -1, top, nodes


@kernel
def _copy(source: Ints, target: Ints, slots: Ints) -> None:
    for w in range(slots.size):
        for q in range(slots[w]):
            target[w, q] = source[w, q]


@kernel
def _free(items: Ints, j: int, c: int, avail: Ints) -> bool:
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
