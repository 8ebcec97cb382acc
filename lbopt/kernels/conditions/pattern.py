"""The pricing problem under conditions: the pattern of most profit for one worker.

So many requests (blanks among them) whose work fits the margin, and whose needs fit what is free of two resources. One
request is a scan. For more, multipliers a >= 0 of the three limits r give the bound

    sum of profits <= a . r + sum of (profit - a . weights)

whose second part is at most that of the q classes of largest reduced profit, profit - a . weights. The multipliers are
raised by bisection until those fit, one limit after the other; where they fit at multipliers of zero, they are the
answer. Else a depth-first search follows (`lbopt.kernels.conditions.deep`). Near the prices of the master program
reduced profits are nearly equal, so that the bound is off by a few units, and little has to be searched.

Exactly q requests are taken, so what the lightest class takes of a limit is first taken q times off the limit, and off
all weights: near-equal requests then differ by small numbers. Multipliers stay so small that no product overflows; each
of them gives a bound.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.deep import search_deep
from lbopt.kernels.conditions.state import FORBIDDEN, NONE, Search, Step, book
from lbopt.kernels.stable_order import stable_order

#: Steps after which a pattern is left as it is, where any bound will do and where it has to be exact.
ROUGHLY, EXACTLY = 8_000, 1_000_000

#: Bounds that differ by no more are as good as equal.
_MEETING = 64

#: A multiplier beyond all profits, and the most that it may charge for a whole limit: sums of these do not overflow.
_STEEP, _DEAREST = 1 << 40, 1 << 55

#: Multipliers of one limit that are tried at most while the best one is bracketed.
_TURNS = 200

#: Limits that are looked at again after the multiplier of another one was raised.
_PASSES = 4


@kernel
def candidates(step: Step, s: Search, w: int, q: int, margin: int, avail: Ints, price: Ints) -> int:
    """List what worker w can take within a margin; return how many classes."""
    value, work, need, scale, banned = step.value, step.work, step.need, step.scale, s.path.banned[w]
    count, rooms = 0, s.rooms
    most = min(margin, FORBIDDEN - 1)
    for k in range(avail.size):
        if avail[k] > 0 and banned[k] == 0 and work[w, k] <= most and need[0, k] <= rooms[0] and need[1, k] <= rooms[1]:
            s.item[count] = k
            s.profit[count] = value[w, k] * scale - price[k]
            count += 1
    if q > 1 and avail[avail.size - 1] >= q and banned[avail.size - 1] == 0:
        # Whatever has no more profit than as many blanks as there are slots is not needed.
        least, kept = -price[avail.size - 1], 0
        for c in range(count):
            if s.profit[c] > least or s.item[c] == avail.size - 1:
                s.item[kept], s.profit[kept] = s.item[c], s.profit[c]
                kept += 1
        count = kept
    weights = s.weights
    for c in range(count):
        k = s.item[c]
        weights[0, c] = work[w, k]
        weights[1, c] = need[0, k]
        weights[2, c] = need[1, k]
        s.number[c] = avail[k]
    return count


@kernel
def best_pattern(
    step: Step, s: Search, w: int, q: int, margin: int, avail: Ints, price: Ints, least: int
) -> tuple[int, int]:
    """Return what no profit of q requests on worker w exceeds, and the profit of those left in s.chosen[:q].

    The second is NONE where nothing of more profit than `least` was found; the first is then at most `least`, or the
    bound of a search that was cut off. Both are equal otherwise, unless it was cut off.
    """
    if q == 0:
        fits = 0 if margin >= 0 else NONE
        return fits, fits
    book(s, avail.size)
    if q == 1:
        return _single(step, s, w, margin, avail, price)
    count = candidates(step, s, w, q, margin, avail, price)
    return _several(s, w, count, q, margin, least)


@kernel
def _single(step: Step, s: Search, w: int, margin: int, avail: Ints, price: Ints) -> tuple[int, int]:
    """Return the most profit of one request, twice: a scan."""
    value, work, need, scale, banned = step.value, step.work, step.need, step.scale, s.path.banned[w]
    best, choice = NONE, -1
    most = min(margin, FORBIDDEN - 1)
    rooms = s.rooms
    first, second = rooms[0], rooms[1]
    for k in range(avail.size):
        if work[w, k] <= most and avail[k] > 0 and banned[k] == 0:
            profit = value[w, k] * scale - price[k]
            if profit > best and need[0, k] <= first and need[1, k] <= second:
                best, choice = profit, k
    chosen = s.chosen
    chosen[0] = choice
    return best, best


@kernel
def _several(s: Search, w: int, count: int, q: int, margin: int, least: int) -> tuple[int, int]:
    """Return bound and profit of q of the listed candidates, as `best_pattern` does."""
    limit, top = s.limit, s.top
    limit[0] = margin
    limit[1:] = s.rooms
    for r in range(3):
        if not _shift(s, count, q, r):
            return NONE, NONE
    count, copies = _fitting(s, count, q)
    if copies < q:
        return NONE, NONE
    s.effort.lowest = FORBIDDEN
    if least > NONE:  # the multipliers of last time often show that nothing is better
        for r in range(3):
            s.multiplier[r] = min(s.kept[w, r], s.steepest[r])
        _take_top(s, count, q)
        if s.effort.lowest <= least:
            return s.effort.lowest, NONE
    s.multiplier[:] = 0
    _take_top(s, count, q)
    for _ in range(_PASSES):
        worst, excess = -1, 0.0
        for r in range(3):
            if s.usage[r] > limit[r]:
                more = s.usage[r] / (limit[r] + 1.0)
                if more > excess:
                    worst, excess = r, more
        if worst < 0:
            break
        if not _raise(s, w, count, q, worst):
            return NONE, NONE
    s.kept[w] = s.multiplier
    bound, offset, found = s.effort.lowest, 0, NONE
    for r in range(3):
        offset += s.multiplier[r] * limit[r]
    if bound <= least:
        return bound, NONE
    best = least
    usage = s.usage
    if usage[0] <= limit[0] and usage[1] <= limit[1] and usage[2] <= limit[2]:
        profit = 0
        for i in range(q):
            profit += s.profit[top[i]]
        if profit > best:
            best = found = profit
            for i in range(q):
                s.chosen[i] = s.item[top[i]]
        if best >= bound:
            return best, found
    ranking = stable_order(-s.reduced[:count])
    s.order[:count] = ranking
    return search_deep(s, count, q, offset, bound, best, found)


@kernel
def _shift(s: Search, count: int, q: int, r: int) -> bool:
    """Take q times the least weight off limit r, and it off the weights; False where q of the candidates never fit."""
    weights, lightest, heaviest = s.weights[r], FORBIDDEN, 0
    for c in range(count):
        lightest, heaviest = min(lightest, weights[c]), max(heaviest, weights[c])
    s.limit[r] -= q * lightest
    if s.limit[r] < 0:
        return False
    for c in range(count):
        weights[c] -= lightest
    heaviest = q * (heaviest - lightest)
    s.limit[r] = min(s.limit[r], heaviest)  # more is never taken
    s.steepest[r] = min(_STEEP, _DEAREST // max(1, heaviest))
    return True


@kernel
def _fitting(s: Search, count: int, q: int) -> tuple[int, int]:
    """Drop the candidates that exceed a limit even beside the lightest; return how many are left, and their copies."""
    weights, limit = s.weights, s.limit
    kept, copies = 0, 0
    for c in range(count):
        if weights[0, c] <= limit[0] and weights[1, c] <= limit[1] and weights[2, c] <= limit[2]:
            s.item[kept], s.profit[kept], s.number[kept] = s.item[c], s.profit[c], s.number[c]
            for r in range(3):
                weights[r, kept] = weights[r, c]
            copies += min(q, s.number[c])
            kept += 1
    return kept, copies


@kernel
def _take_top(s: Search, count: int, q: int) -> None:
    """Reduce the profits, and put the places of the q largest in s.top, and what they take of each limit in s.usage.

    The least of the bounds so far is kept in s.effort.lowest.
    """
    multiplier, limit = s.multiplier, s.limit
    book(s, count + q)
    a, b, e = multiplier[0], multiplier[1], multiplier[2]
    top, reduced, weights = s.top, s.reduced, s.weights
    have = 0
    for c in range(count):
        p = s.profit[c] - a * weights[0, c] - b * weights[1, c] - e * weights[2, c]
        reduced[c] = p
        for _ in range(min(q, s.number[c])):
            if have == q:
                if p <= reduced[top[q - 1]]:
                    break
                i = q - 1
            else:
                i = have
                have += 1
            while i > 0 and reduced[top[i - 1]] < p:
                top[i] = top[i - 1]
                i -= 1
            top[i] = c
    bound = a * limit[0] + b * limit[1] + e * limit[2]
    for i in range(q):
        bound += reduced[top[i]]
    s.effort.bound = bound
    s.effort.lowest = min(s.effort.lowest, bound)
    for r in range(3):
        s.usage[r] = 0
        for i in range(q):
            s.usage[r] += weights[r, top[i]]


@kernel
def _raise(s: Search, w: int, count: int, q: int, r: int) -> bool:
    """Raise the multiplier of limit r until the classes of largest reduced profit keep it; False where none do.

    It stays at its steepest where that does not suffice: the bound holds, and who fits is left to the search.
    """
    least, limit, steepest = s.multiplier[r], s.limit[r], s.steepest[r]
    below, at_below, falls = least, s.effort.bound, s.usage[r] - limit
    above, grows = max(4096, 2 * least), 1
    if s.kept[w, r] > least:  # that of last time is near in most cases
        above = s.kept[w, r]
    while True:
        above = min(above, steepest)
        s.multiplier[r] = above
        _take_top(s, count, q)
        if s.usage[r] <= limit:
            break
        if above == steepest:
            return _lightest(s, count, q, r) <= limit
        below, at_below, falls = above, s.effort.bound, s.usage[r] - limit
        above += max(1, above // 64) * grows
        grows *= 4
    at_above, rises = s.effort.bound, limit - s.usage[r]
    for _ in range(_TURNS):
        if above - below <= 1 or rises <= 0:
            break
        # The bound is convex, in straight pieces: it is least where the pieces to both sides meet, or that is nearer.
        middle = below + (at_below - at_above + (above - below) * rises) // (falls + rises)
        middle = min(max(middle, below + 1), above - 1)
        meet = at_below - (middle - below) * falls
        s.multiplier[r] = middle
        _take_top(s, count, q)
        if s.usage[r] <= limit:
            above, at_above, rises = middle, s.effort.bound, limit - s.usage[r]
            if s.effort.bound <= meet + _MEETING:
                break
        else:
            settled = s.effort.bound <= meet + _MEETING
            below, at_below, falls = middle, s.effort.bound, s.usage[r] - limit
            if settled and above > middle + 1:
                s.multiplier[r] = middle + 1
                _take_top(s, count, q)
                if s.usage[r] <= limit:
                    above = middle + 1
                    break
                below, at_below, falls = middle + 1, s.effort.bound, s.usage[r] - limit
    s.multiplier[r] = above
    _take_top(s, count, q)
    return True


@kernel
def _lightest(s: Search, count: int, q: int, r: int) -> int:
    """Return the least that q of the candidates take of limit r."""
    weights, total, last, taken = s.weights[r], 0, -1, 0
    while taken < q:
        following = -1
        for c in range(count):
            if weights[c] > last and (following < 0 or weights[c] < following):
                following = weights[c]
        if following < 0:
            return 1 << 60
        for c in range(count):
            if weights[c] == following:
                more = min(q - taken, s.number[c])
                total += more * following
                taken += more
        last = following
    return total
