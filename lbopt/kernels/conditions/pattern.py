"""The pricing problem under conditions: the pattern of most profit for one worker.

So many requests (blanks among them) whose work fits the margin, and whose needs fit what is free of two resources. A
depth-first search takes the classes in descending order of profit. A branch is left where its profit, with the next
profits or with what the margin still permits, cannot exceed the best one. The second bound: of j requests within a
margin r the i-th largest has at most r / i, so that they are worth at most the sum over i of p(r / i), where p(r) is
the most profit of a request of at most r. p is a table over grains of the margin; work and margins are both rounded
down, so that all that fits in tokens fits in grains. The search is cut off after so many steps; then it returns a bound that no pattern exceeds
beside the best pattern that it has found.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.state import FORBIDDEN, NONE, Search, Step

#: Grains of a margin.
BUCKETS = 256

#: Steps after which a pattern is left as it is.
STEPS = 60_000

#: Requests from which on the table over grains pays.
_MANY = 3

#: Profit of a grain that nothing fits; sums of as many as a worker has slots stay far from an overflow.
_NOTHING = -(1 << 57)


@kernel
def candidates(step: Step, s: Search, w: int, q: int, margin: int, rooms: Ints, avail: Ints, price: Ints) -> int:
    """List what worker w can take within a margin, most profit first; return how many classes.

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
    value, work, need, scale = step.value, step.work, step.need, step.scale
    count = 0
    most = min(margin, FORBIDDEN - 1)
    for k in range(avail.size):
        if avail[k] > 0 and work[w, k] <= most and need[0, k] <= rooms[0] and need[1, k] <= rooms[1]:
            s.item[count] = k
            s.profit[count] = value[w, k] * scale - price[k]
            count += 1
    if q > 1 and count > 1:
        ranking = np.argsort(-s.profit[:count], kind="mergesort")
        profit, item = s.profit[:count][ranking], s.item[:count][ranking]
        s.profit[:count] = profit
        s.item[:count] = item
    blanks = 0
    for c in range(count):
        k = s.item[c]
        s.weight[c] = work[w, k]
        s.first_need[c] = need[0, k]
        s.second_need[c] = need[1, k]
        s.number[c] = avail[k]
        if k == avail.size - 1 and avail[k] >= q:
            blanks = c + 1
    if q > 1 and blanks > 0:
        return blanks  # whatever has less profit than as many blanks as there are slots
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
    return _deep(s, count, q, margin, rooms, least)


@kernel
def _single(step: Step, s: Search, w: int, margin: int, rooms: Ints, avail: Ints, price: Ints) -> tuple[int, int]:
    """Return the most profit of one request, twice: a scan.

    Parameters
    ----------
    step, s, w, margin, rooms, avail, price
        As in `best_pattern`.
    """
    value, work, need, scale = step.value, step.work, step.need, step.scale
    best, choice = NONE, -1
    most = min(margin, FORBIDDEN - 1)
    first, second = rooms[0], rooms[1]
    for k in range(avail.size):
        if work[w, k] <= most and avail[k] > 0:
            profit = value[w, k] * scale - price[k]
            if profit > best and need[0, k] <= first and need[1, k] <= second:
                best, choice = profit, k
    s.chosen[0] = choice
    return best, best


@kernel
def _deep(s: Search, count: int, q: int, margin: int, rooms: Ints, least: int) -> tuple[int, int]:
    """Return bound and profit of q of the listed candidates, by depth-first search.

    Parameters
    ----------
    s
        The search, whose scratch changes in place.
    count, q
        Candidates listed; requests to take.
    margin, rooms
        As in `best_pattern`.
    least
        Profit that is known already.
    """
    item, profit, weight, number = s.item, s.profit, s.weight, s.number
    first_need, second_need = s.first_need, s.second_need
    stack, repeats, start, sums, tops = s.stack, s.repeats, s.start, s.sums, s.tops
    if count == 0:
        return NONE, NONE
    light, little, less = weight[0], first_need[0], second_need[0]
    for c in range(count):
        light, little, less = min(light, weight[c]), min(little, first_need[c]), min(less, second_need[c])
    if q * light > margin or q * little > rooms[0] or q * less > rooms[1]:
        return NONE, NONE
    grain = 1
    if q >= _MANY:
        grain = max(1, margin // BUCKETS + 1)
        last = margin // grain
        for b in range(last + 1):
            tops[b] = _NOTHING
        for c in range(count):
            b = weight[c] // grain
            tops[b] = max(tops[b], profit[c])
        for b in range(1, last + 1):
            tops[b] = max(tops[b], tops[b - 1])
    best, found, d, steps = least, NONE, 0, 0
    start[0], sums[0, 0], sums[1, 0], sums[2, 0], sums[3, 0] = 0, 0, margin, rooms[0], rooms[1]
    while d >= 0:
        rest = q - d
        c, value, room, one, two = start[d], sums[0, d], sums[1, d], sums[2, d], sums[3, d]
        ahead = rest - 1
        room_here, one_here, two_here = room - ahead * light, one - ahead * little, two - ahead * less
        descended = False
        while c < count:
            steps += 1
            p = profit[c]
            if value + rest * p <= best:
                break  # all that follow are worth less
            if weight[c] > room_here or first_need[c] > one_here or second_need[c] > two_here:
                c += 1
                continue
            if ahead == 0:
                best = found = value + p
                stack[d] = c
                for e in range(q):
                    s.chosen[e] = item[stack[e]]
                break  # nothing later at this depth is better
            if q >= _MANY:
                after = room - weight[c]
                hope = value + p
                for i in range(1, ahead + 1):
                    hope += min(p, tops[after // i // grain])
                if hope <= best:
                    c += 1
                    continue
            stack[d] = c
            repeats[d] = repeats[d - 1] + 1 if d > 0 and stack[d - 1] == c else 1
            start[d] = c + 1
            start[d + 1] = c if repeats[d] < number[c] else c + 1
            sums[0, d + 1] = value + p
            sums[1, d + 1] = room - weight[c]
            sums[2, d + 1] = one - first_need[c]
            sums[3, d + 1] = two - second_need[c]
            d += 1
            descended = True
            break
        if not descended:
            d -= 1
        if steps > STEPS:
            hope = 0
            for i in range(1, q + 1):
                hope += profit[0] if q < _MANY else min(profit[0], tops[margin // i // grain])
            return max(best, hope), found
    return best, found
