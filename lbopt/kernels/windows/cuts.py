"""Cuts: what several workers can hold together, because they draw from one pool.

Slot by slot: a slot of worker w holds at most the largest class that the node leaves it. Such limits are nested, so the
most that a set of slots can hold follows greedily: from the largest class down, each request goes to a slot that may
hold it and is still empty, whichever. Requests that are bound to a worker are gone for the others. The same from below.
Limits are computed anew for every node, so that a cut is as tight as its box.
"""

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.windows.state import CUTS, Box, Cuts, Pool, Program, Scratch


@kernel
def limit_of(pool: Pool, slots: Ints, box: Box, inside: Ints, sense: int, demand: Ints) -> int:
    """Return what the workers `inside` hold at most (sense 1) or at least (-1); -1 where they cannot be filled.

    Parameters
    ----------
    inside
        (W,) int64, 1 for these workers, else 0.
    sense
        1 or -1.
    demand
        (K + 1,) int64, scratch.
    """
    v, avail, most = pool.v, box.avail, box.most
    W, K = slots.size, v.size
    places = 0
    top = sense > 0
    total = 0
    for k in range(K):
        demand[k] = 0
    for w in range(W):
        if inside[w] == 0:
            continue
        total += box.held[w]
        q = slots[w] - box.fixed[w]
        if q == 0:
            continue
        places += q
        if top:
            demand[most[w]] += q
        else:
            demand[box.least[w]] += 1
            if q > 1:
                share = box.low[w] - box.held[w] - (q - 1) * v[most[w]]
                demand[last_fitting(v, share - 1) + 1] += q - 1
    with_forced = 0
    if pool.forced > 0:
        with_forced = _with_forced(pool, slots, box, inside, top)
        if with_forced < 0:
            return -1
    waiting = 0
    for turn in range(K):
        k = K - 1 - turn if top else turn
        if demand[k] > 0:
            waiting += demand[k]
        if waiting > 0 and avail[k] > 0:
            served = min(waiting, avail[k])
            total += served * v[k]
            waiting -= served
            places -= served
            if places == 0:
                break
    if places > 0:
        return -1
    if pool.forced > 0:
        return min(total, with_forced) if top else max(total, with_forced)
    return total


@kernel
def _with_forced(pool: Pool, slots: Ints, box: Box, inside: Ints, top: bool) -> int:
    """Return what the workers inside hold at most (or least) when the others cannot take all forced requests.

    -1 where there are more forced requests than places for them.

    Parameters
    ----------
    inside
        (W,) int64, 1 for these workers, else 0.
    top
        Whether the most or the least is returned.
    """
    v, must, n, avail = pool.v, pool.must, pool.n, box.avail
    K = v.size
    owed, smallest = 0, K
    for k in range(K - 1, -1, -1):
        missing = must[k] - (n[k] - avail[k])
        if missing > 0:
            owed += missing
            smallest = k
    needed, free, total = owed, 0, 0
    for w in range(slots.size):
        left = slots[w] - box.fixed[w]
        if inside[w] == 1:
            free += left
            total += box.held[w]
        elif left > 0 and smallest <= box.most[w]:
            # The next request of w is of the classes least..most, the others are no larger.
            takes = 0
            for k in range(box.least[w], box.most[w] + 1):
                if must[k] > n[k] - avail[k]:
                    takes = 1
                    break
            needed -= left - 1 + takes
    needed = max(0, needed)
    if needed > free:
        return -1
    free -= needed
    for turn in range(K):
        k = K - 1 - turn if top else turn
        taken = min(max(0, must[k] - (n[k] - avail[k])), needed)
        needed -= taken
        more = min(avail[k] - taken, free)
        free -= more
        total += (taken + more) * v[k]
    return total


@kernel
def refresh(pool: Pool, slots: Ints, box: Box, cuts: Cuts, count: int, right: Ints, demand: Ints) -> bool:
    """Set the right sides of the box and of all cuts at the node at hand; False where a cut shows that it is empty.

    Parameters
    ----------
    cuts, count
        The cuts, and how many of them there are; their limits are set in place.
    right
        (rows,) int64, right sides of the linear program, tokens; those of boxes and cuts are set in place.
    demand
        (K + 1,) int64, scratch.
    """
    W = slots.size
    first = right.size - 2 * W - CUTS
    for w in range(W):
        right[first + w], right[first + W + w] = box.low[w], -box.high[w]
    for c in range(count):
        sense = cuts.sense[c]
        if sense == 0:
            continue
        limit = limit_of(pool, slots, box, cuts.inside[c], sense, demand)
        cuts.limit[c] = limit
        if limit < 0:
            return False
        right[first + 2 * W + c] = -sense * limit
        total = 0
        for w in range(W):
            total += cuts.inside[c, w] * (box.low[w] if sense > 0 else box.high[w])
        if sense * (total - limit) > 0:
            return False
    return True


@kernel
def separate(
    pool: Pool, slots: Ints, box: Box, cuts: Cuts, program: Program, progress: Record, scratch: Scratch
) -> int:
    """Add cuts that the point violates; return how many.

    Candidates are the workers that hold most a slot, one more at a time, and those that hold least. Of each sort those
    are added that are violated most, and most for their number of workers.
    """
    W = slots.size
    point, right = program.point[program.point.size - W :], program.right
    candidate, limits, order = scratch.inside, scratch.limits, scratch.order
    added = 0
    for w in range(W):
        candidate[w] = 0
    for turn in range(2):
        sense = 1 - 2 * turn
        count = 0
        for w in range(W):
            if box.fixed[w] == slots[w]:
                continue
            key = sense * point[w] / slots[w]
            at = count
            while at > 0 and sense * point[order[at - 1]] / slots[order[at - 1]] < key:
                order[at] = order[at - 1]
                at -= 1
            order[at] = w
            count += 1
        deepest, densest = -1, -1
        depth, density, total = 0.01, 0.01, 0.0
        for i in range(count):
            w = order[i]
            candidate[w] = 1
            total += point[w]
            if i == 0 and slots[w] == 1:
                continue  # its box says as much
            limits[i] = limit_of(pool, slots, box, candidate, sense, scratch.demand)
            gap = sense * (total - limits[i])
            if limits[i] >= 0 and gap > depth:
                depth, deepest = gap, i
            if limits[i] >= 0 and gap > density * (i + 1):
                density, densest = gap / (i + 1), i
        for w in range(W):
            candidate[w] = 0
        for rule in range(2):
            last = deepest if rule == 0 else densest
            c = _free_cut(cuts.sense, progress.cuts, program.basis, right.size - CUTS, scratch.in_basis)
            if last < 0 or c < 0 or (rule == 1 and last == deepest):
                break
            for i in range(count):
                cuts.inside[c, order[i]] = 1 if i <= last else 0
            for w in range(W):
                if box.fixed[w] == slots[w]:
                    cuts.inside[c, w] = 0
            cuts.sense[c], cuts.limit[c] = sense, limits[last]
            right[right.size - CUTS + c] = -sense * limits[last]
            progress.cuts = max(progress.cuts, c + 1)
            added += 1
    return added


@kernel
def _free_cut(sense: Ints, count: int, basis: Ints, first: int, in_basis: Ints) -> int:
    """Return the number of a cut that is not in the basis, -1 for none.

    Parameters
    ----------
    sense
        (CUTS,) int64, 0 where a cut is not in use.
    count
        Cuts so far.
    basis
        (n,) int64, rows of the basis.
    first
        Row of the first cut.
    in_basis
        (CUTS,) int64, scratch.
    """
    for c in range(count):
        if sense[c] == 0:
            return c
    if count < CUTS:
        return count
    for c in range(count):
        in_basis[c] = 0
    for row in basis:
        if row >= first:
            in_basis[row - first] = 1
    for c in range(count):
        if in_basis[c] == 0:
            return c
    return -1
