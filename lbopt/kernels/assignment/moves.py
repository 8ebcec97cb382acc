"""The cheapest moves from one centre to another, kept as points come and go.

The arc from k to l is as long as the least of costs[i, l] - costs[i, k] over the points at k. Prices do not enter into
this order, so it is worth keeping: of each pair the r points of least difference are listed when k is first looked at.
A point that leaves is struck out only when it comes to the head of a list, and one that arrives goes into the lists
whose bound it undercuts. Where a list runs out, all lists of k are made anew, from one look at all labels and at the
costs of the points at k. As there are n / K of these, both looks take about as long.
"""

from lbopt.kernels.assignment.terms import FAR, Moves, Points
from lbopt.kernels.compile import kernel


@kernel
def list_moves(points: Points, moves: Moves, k: int) -> None:
    """Make the lists of centre k."""
    costs, labels = points.costs, points.labels
    K = costs.shape[1]
    bound = moves.bound[k]
    for j in range(K):
        moves.first[k, j] = moves.stop[k, j] = 0
        bound[j] = FAR
    bound[k] = -FAR  # nothing is listed for staying
    for p in range(labels.size):
        if labels[p] == k:
            row = costs[points.rows[p]]
            own = row[k]
            for j in range(K):
                if row[j] - own < bound[j]:
                    _insert(moves, k, j, row[j] - own, p)
    for j in range(K):
        if moves.stop[k, j] > 0:
            moves.nearest[k, j], moves.least[k, j] = moves.point[k, j, 0], moves.difference[k, j, 0]
        else:
            moves.nearest[k, j], moves.least[k, j] = -1, FAR
    moves.known[k] = True


@kernel
def _insert(moves: Moves, k: int, j: int, difference: int, p: int) -> None:
    """Put a point into the list of a pair, whose bound it undercuts; a full list loses its last point for it."""
    listed, value = moves.point[k, j], moves.difference[k, j]
    first, stop = moves.first[k, j], moves.stop[k, j]
    if stop == listed.size:
        if first > 0:
            for q in range(first, stop):
                listed[q - first], value[q - first] = listed[q], value[q]
            stop -= first
            first = 0
        else:
            stop -= 1
            moves.bound[k, j] = max(difference, value[stop])
            if difference >= value[stop]:
                return
    at = stop
    while at > first and value[at - 1] > difference:
        listed[at], value[at] = listed[at - 1], value[at - 1]
        at -= 1
    listed[at], value[at] = p, difference
    moves.first[k, j], moves.stop[k, j] = first, stop + 1


@kernel
def strike(points: Points, moves: Moves, k: int, p: int) -> None:
    """Take note that point p has left centre k; its label has changed already."""
    if not moves.known[k]:
        return
    nearest = moves.nearest[k]
    for j in range(nearest.size):
        if nearest[j] != p:
            continue
        at, stop = moves.first[k, j], moves.stop[k, j]
        while at < stop and points.labels[moves.point[k, j, at]] != k:
            at += 1
        moves.first[k, j] = at
        if at < stop:
            nearest[j], moves.least[k, j] = moves.point[k, j, at], moves.difference[k, j, at]
        elif moves.bound[k, j] < FAR:
            moves.known[k] = False
            return
        else:
            nearest[j], moves.least[k, j] = -1, FAR


@kernel
def enter(points: Points, moves: Moves, k: int, p: int) -> None:
    """Take note that point p has come to centre k."""
    if not moves.known[k]:
        return
    row = points.costs[points.rows[p]]
    bound, own = moves.bound[k], row[k]
    for j in range(bound.size):
        difference = row[j] - own
        if difference < bound[j]:
            _insert(moves, k, j, difference, p)
            if difference < moves.least[k, j]:
                moves.nearest[k, j], moves.least[k, j] = p, difference
