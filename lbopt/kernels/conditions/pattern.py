"""The pricing problem under conditions: the pattern of most profit for one worker.

So many requests (blanks among them) whose work fits the margin, and whose needs fit what is free of two resources. One
request is a scan. For more, multipliers a >= 0 of the three limits r give the bound

    sum of profits <= a . r + sum of (profit - a . weights)

whose second part is at most that of the q classes of largest reduced profit, profit - a . weights. The multipliers are
raised by bisection until those fit, one limit after the other; where they fit at multipliers of zero, they are the
answer. Else a depth-first search takes classes in descending order of reduced profit and leaves a branch where the
bound does not exceed the best profit. A second bound is for few large requests: of j requests within a margin r the
i-th largest has at most r / i, so that they are worth at most the sum over i of p(r / i), where p(r) is the most profit
of one request of at most r, a table over grains of the margin. Near the prices of the master program reduced profits
are nearly equal, so that the bound is off by a few units, and little has to be searched.

The search is cut off after so many steps; then it returns the bound beside the best pattern that it has found.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.state import FORBIDDEN, NONE, Search, Step

#: Steps after which a pattern is left as it is, where any bound will do and where it has to be exact.
ROUGHLY, EXACTLY = 8_000, 1_000_000

#: Grains of a margin, and the profit of a grain that nothing fits; sums of a few of these are far from an overflow.
BUCKETS = 512
_NOTHING = -(1 << 56)

#: Bounds that differ by no more are as good as equal.
_MEETING = 64

#: A multiplier beyond all profits.
_STEEP = 1 << 40

#: Limits that are looked at again after the multiplier of another one was raised.
_PASSES = 4


@kernel
def candidates(step: Step, s: Search, w: int, q: int, margin: int, rooms: Ints, avail: Ints, price: Ints) -> int:
    """List what worker w can take within a margin; return how many classes.

    Parameters
    ----------
    step, s
        The decision, and the search, whose scratch changes in place.
    w, q
        Worker, and requests that it takes.
    margin
        Work that fits.
    rooms
        int64 (2,): what is free of each resource.
    avail, price
        int64 (K,): requests that there are, and prices.
    """
    value, work, need, scale, banned = step.value, step.work, step.need, step.scale, s.path.banned[w]
    count = 0
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
    step: Step, s: Search, w: int, q: int, margin: int, rooms: Ints, avail: Ints, price: Ints, least: int
) -> tuple[int, int]:
    """Return what no profit of q requests on worker w exceeds, and the profit of those left in s.chosen[:q].

    The second is NONE where nothing of more profit than `least` was found; the first is then at most `least`, or the
    bound of a search that was cut off. Both are equal otherwise, unless it was cut off.

    Parameters
    ----------
    step, s
        The decision, and the search, whose scratch changes in place.
    w, q
        Worker, and requests that it takes.
    margin
        Work that fits.
    rooms
        int64 (2,): what is free of each resource.
    avail, price
        int64 (K,): requests that there are, and prices.
    least
        Profit that is known already.
    """
    if q == 0:
        fits = 0 if margin >= 0 else NONE
        return fits, fits
    if q == 1:
        return _single(step, s, w, margin, rooms, avail, price)
    count = candidates(step, s, w, q, margin, rooms, avail, price)
    return _several(s, w, count, q, margin, rooms, least)


@kernel
def _single(step: Step, s: Search, w: int, margin: int, rooms: Ints, avail: Ints, price: Ints) -> tuple[int, int]:
    """Return the most profit of one request, twice: a scan.

    Parameters
    ----------
    step, s, w, margin, rooms, avail, price
        As in `best_pattern`.
    """
    value, work, need, scale, banned = step.value, step.work, step.need, step.scale, s.path.banned[w]
    best, choice = NONE, -1
    most = min(margin, FORBIDDEN - 1)
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
def _several(s: Search, w: int, count: int, q: int, margin: int, rooms: Ints, least: int) -> tuple[int, int]:
    """Return bound and profit of q of the listed candidates, as `best_pattern` does.

    Parameters
    ----------
    s
        The search, whose scratch changes in place.
    w, count, q
        Worker; candidates listed; requests to take.
    margin, rooms
        As in `best_pattern`.
    least
        Profit that is known already.
    """
    limit, weights, top = s.limit, s.weights, s.top
    limit[0], limit[1], limit[2] = margin, rooms[0], rooms[1]
    copies = 0
    for c in range(count):
        copies += min(q, s.number[c])
    if copies < q:
        return NONE, NONE
    s.effort.lowest = FORBIDDEN
    if least > NONE:  # the multipliers of last time often show that nothing is better
        s.multiplier[:] = s.kept[w]
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
    ranking = np.argsort(-s.reduced[:count], kind="mergesort")
    s.order[:count] = ranking
    light = s.usage  # from here on the least that one request takes of each limit
    for r in range(3):
        light[r] = weights[r, 0]
        for c in range(1, count):
            light[r] = min(light[r], weights[r, c])
        if q * light[r] > limit[r]:
            return NONE, NONE
    return _deep(s, count, q, offset, bound, best, found)


@kernel
def _take_top(s: Search, count: int, q: int) -> None:
    """Reduce the profits, and put the places of the q largest in s.top, and what they take of each limit in s.usage.

    The least of the bounds so far is kept in s.effort.lowest.
    """
    multiplier, limit = s.multiplier, s.limit
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

    Parameters
    ----------
    s
        The search, whose scratch changes in place.
    w, count, q, r
        Worker, candidates listed, requests to take, limit.
    """
    least, limit = s.multiplier[r], s.limit[r]
    below, at_below, falls = least, s.effort.bound, s.usage[r] - limit
    above, grows = max(4096, 2 * least), 1
    if s.kept[w, r] > least:  # that of last time is near in most cases
        above = s.kept[w, r]
    while True:
        s.multiplier[r] = above
        _take_top(s, count, q)
        if s.usage[r] <= limit:
            break
        below, at_below, falls = above, s.effort.bound, s.usage[r] - limit
        above += max(1, above // 64) * grows
        grows *= 4
        if above > _STEEP:
            return _lightest(s, count, q, r) <= limit
    at_above, rises = s.effort.bound, limit - s.usage[r]
    while above - below > 1 and rises > 0:
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
    """Return the least that q of the candidates take of limit r.

    Parameters
    ----------
    s
        The search.
    count, q, r
        Candidates listed, requests to take, limit.
    """
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


@kernel
def _deep(s: Search, count: int, q: int, offset: int, bound: int, best: int, found: int) -> tuple[int, int]:
    """Return bound and profit of q candidates, by depth-first search in the order s.order.

    Parameters
    ----------
    s
        The search, whose scratch changes in place; s.usage holds the least that one request takes of each limit.
    count, q
        Candidates listed; requests to take.
    offset, bound
        What the multipliers charge for the limits; the bound at the root.
    best, found
        Profit that is known already; that of s.chosen, NONE for none.
    """
    stack, repeats, start, sums, light = s.stack, s.repeats, s.start, s.sums, s.usage
    profit, reduced, order, number, weights = s.profit, s.reduced, s.order, s.number, s.weights
    d, steps, tops = 0, 0, s.tops
    grain = s.grain
    for r in range(3):
        grain[r] = _fill_tops(s, count, q, r)
    start[0], sums[0, 0], sums[1, 0] = 0, 0, offset
    for r in range(3):
        sums[2 + r, 0] = s.limit[r]
    while d >= 0:
        rest = q - d
        ahead = rest - 1
        place, value, hope = start[d], sums[0, d], sums[1, d]
        room, one, two = sums[2, d], sums[3, d], sums[4, d]
        room_here, one_here, two_here = room - ahead * light[0], one - ahead * light[1], two - ahead * light[2]
        descended = False
        while place < count:
            steps += 1
            c = order[place]
            if hope + rest * reduced[c] <= best:
                break  # all that follow are worth less
            if weights[0, c] > room_here or weights[1, c] > one_here or weights[2, c] > two_here:
                place += 1
                continue
            if ahead == 0:
                if value + profit[c] > best:
                    best = found = value + profit[c]
                    stack[d] = c
                    for i in range(q):
                        s.chosen[i] = s.item[stack[i]]
                    if best >= bound:
                        return best, found
                place += 1
                continue
            reach = best + 1
            for r in range(3):
                if grain[r] > 0:
                    left, most = sums[2 + r, d] - weights[r, c], value + profit[c]
                    for i in range(1, ahead + 1):
                        most += tops[r, left // i // grain[r]]
                    reach = min(reach, most)
            if reach <= best:
                place += 1
                continue
            stack[d] = c
            repeats[d] = repeats[d - 1] + 1 if d > 0 and stack[d - 1] == c else 1
            start[d] = place + 1
            start[d + 1] = place if repeats[d] < number[c] else place + 1
            sums[0, d + 1] = value + profit[c]
            sums[1, d + 1] = hope + reduced[c]
            sums[2, d + 1] = room - weights[0, c]
            sums[3, d + 1] = one - weights[1, c]
            sums[4, d + 1] = two - weights[2, c]
            d += 1
            descended = True
            break
        if not descended:
            d -= 1
        if steps > s.effort.steps and d >= 0:
            return max(best, bound), found
    return best, found


@kernel
def _fill_tops(s: Search, count: int, q: int, r: int) -> int:
    """Write the most profit of one request by what it takes of limit r; return the grain, 0 where r never binds.

    Parameters
    ----------
    s
        The search, whose scratch changes in place.
    count, q, r
        Candidates listed, requests to take, limit.
    """
    tops, weights, profit = s.tops[r], s.weights[r], s.profit
    heaviest = 0
    for c in range(count):
        heaviest = max(heaviest, weights[c])
    if q * heaviest <= s.limit[r]:
        return 0
    grain = s.limit[r] // BUCKETS + 1
    last = s.limit[r] // grain
    tops[: last + 1] = _NOTHING
    for c in range(count):
        tops[weights[c] // grain] = max(tops[weights[c] // grain], profit[c])
    for b in range(1, last + 1):
        tops[b] = max(tops[b], tops[b - 1])
    return grain
