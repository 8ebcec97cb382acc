"""The best pattern of a worker: exactly c requests whose sizes fit its margin, most profit at given prices.

Size classes k = 0..K-1 ascend in size v[k] (tokens); avail[k] requests of the class are left; p[k] is the profit of
one, its size less its price, in units of 1/scale token. A pattern is a multiset of c classes, written largest class
first.

One request: the best profit among the classes that fit, a prefix maximum. Two: for each larger one the best partner
that still fits, two pointers. More: the largest is tried from the top down and so on until two are left; a branch is
left when it cannot beat the best pattern known, and everything ends when the ceiling is reached. The ceiling is what
no pattern exceeds: a full margin (sizes cost their price, so profit <= size while prices are not negative), or the c
best profits.

Source: the pricing problem of the Dantzig-Wolfe reformulation of BF-IO (IO) at H = 0 for a fixed envelope.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.state import NONE, Choices

#: Branches after which the search for a pattern of three or more gives up; its ceiling is then the bound. A scan for
#: the best pair counts as SCAN of them.
BRANCHES = 4000
SCAN = 10

#: Classes looked at between two looks at the clock, and of how many a unit of work is booked: two nanoseconds each.
_LOOK, _UNIT = 1 << 14, 1 << 9


@kernel
def prefix_best(num_classes: int, p: Ints, avail: Ints, best: Ints) -> None:
    """Set best[k] to the class of most profit among 0..k with requests left (the largest such), -1 for none."""
    top = -1
    for k in range(num_classes):
        if avail[k] > 0 and (top < 0 or p[k] >= p[top]):
            top = k
        best[k] = top


@kernel
def last_fitting(v: Ints, margin: int) -> int:
    """Return the largest class with v[k] <= margin, -1 for none."""
    low, high = 0, v.size
    while low < high:
        middle = (low + high) >> 1
        if v[middle] <= margin:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel
def best_pair(c: Choices, margin: int, last: int, left: int, least: int, ceiling: int, out: Ints, at: int) -> int:
    """Write the best pair among classes 0..last (`left` requests of class `last`) to out[at:at+2]; return its profit.

    Only a pair of more than `least` counts, -2**62 where there is none; ends early once `ceiling` is reached. The
    larger class comes down from the top, its partner's limit goes up, until twice the best profit below is not enough:
    mostly at half the margin.
    """
    v, p, avail, best = c.v, c.p, c.n, c.best
    found = least
    j = -1
    for i in range(last, -1, -1):
        if best[i] < 0 or 2 * p[best[i]] <= found:
            break
        room = margin - v[i]
        while j + 1 < i and v[j + 1] <= room:
            j += 1
        copies = left if i == last else avail[i]
        if copies == 0 or room < v[0]:
            continue
        partner = best[min(i - 1, j)] if i > 0 and j >= 0 else -1
        if partner >= 0 and p[i] + p[partner] > found:
            found = p[i] + p[partner]
            out[at], out[at + 1] = i, partner
        if copies >= 2 and v[i] <= room and 2 * p[i] > found:
            found = 2 * p[i]
            out[at], out[at + 1] = i, i
        if found >= ceiling:
            break
    return found if found > least else NONE


@kernel
def smallest_sums(v: Ints, avail: Ints, sums: Ints) -> None:
    """Set sums[c] to the total of the c smallest requests left; -1 from where there are fewer than c."""
    for c in range(sums.size):
        sums[c] = -1
    sums[0] = 0
    count = 0
    for k in range(v.size):
        for _ in range(avail[k]):
            if count + 1 >= sums.size:
                return
            sums[count + 1] = sums[count] + v[k]
            count += 1


@kernel
def undominated(c: int, p: Ints, avail: Ints, keep: Ints, tops: Ints) -> tuple[int, int]:
    """List the classes that a best pattern of `c` slots may need, in ascending order, in keep.

    A class is not needed where smaller classes hold c requests of no less profit: a pattern has c - 1 others, so one
    of these c is free to take its place.
    """
    size = 0
    length = 0
    for k in range(avail.size):
        if avail[k] == 0 or (size == c and tops[c - 1] >= p[k]):
            continue
        keep[length] = k
        length += 1
        for _ in range(min(avail[k], c)):
            if size < c:
                place = size
                size += 1
            elif p[k] > tops[c - 1]:
                place = c - 1
            else:
                break
            while place > 0 and tops[place - 1] < p[k]:
                tops[place] = tops[place - 1]
                place -= 1
            tops[place] = p[k]
    total = 0
    for place in range(c):
        total += tops[place]
    return length, total if size == c else NONE


@kernel
def best_pattern(c: Choices, slots: int, margin: int, full: int, tops: int, limit: int, out: Ints) -> tuple[int, int]:
    """Find the pattern of most profit for so many slots and `margin` tokens; write its classes to out[:slots].

    `full` and `tops` bound the profit: what a margin filled to the last token is worth, and the largest profits. After
    `limit` branches the search for three or more gives up. A table of pairs ends branches early; with one, a pattern
    that reaches the bound is looked for first. Places from out[slots] on are scratch.

    Returns
    -------
    value, bound
        The profit found (-2**62 where no pattern fits), and what no pattern exceeds; equal where the search ended.
    """
    if c.sums[slots] < 0 or c.sums[slots] > margin:
        return NONE, NONE
    fitting = last_fitting(c.v, margin - c.sums[slots - 1])
    if slots == 1:
        out[0] = c.best[fitting]
        return c.p[out[0]], c.p[out[0]]
    ceiling = min(full, tops)
    if slots == 2:
        value = best_pair(c, margin, fitting, c.n[fitting], NONE, ceiling, out, 0)
        return value, value
    if c.tables > 0:
        value, _ = _best_of_many(c, slots, margin, full, ceiling, limit, ceiling, out)
        if value == ceiling:
            return value, value
    return _best_of_many(c, slots, margin, full, ceiling, limit, NONE + 1, out)


@kernel
def _best_of_many(
    c: Choices, slots: int, margin: int, full: int, ceiling: int, limit: int, least: int, out: Ints
) -> tuple[int, int]:
    """`best_pattern` for three slots and more: descend over the largest, second largest, ... until a pair is left.

    Patterns of a profit below `least` do not count. out[:slots] holds the branch while the search goes on at
    out[slots:2 slots], which is where the best pattern is kept. The numbers left in c.n change, and are put back.
    """
    v, p, avail, best, sums, pair = c.v, c.p, c.n, c.best, c.sums, c.pair
    found, room, profit, exhausted = least - 1, margin, 0, False
    branches = scanned = depth = 0
    top = last_fitting(v, margin - sums[slots - 1])  # the largest class still to be tried at this depth
    while True:
        k = top
        rest = slots - depth
        need = sums[rest - 1]
        while k >= 0 and profit + rest * p[best[k]] > found and (avail[k] == 0 or v[k] + need > room):
            k -= 1
        scanned += top - k + 1
        if scanned >= _LOOK:
            c.known.work += scanned // _UNIT
            scanned = 0
            if used_up(c.known):
                branches = max(branches, limit)
        if k >= 0 and profit + rest * p[best[k]] > found:
            top = k - 1
            branches += 1
            if 3 <= rest <= 2 + c.tables and profit + p[k] + _of_others(c, rest, room - v[k]) <= found:
                if branches < limit:
                    continue
                break
            if rest > 3:
                out[depth] = k
                avail[k] -= 1
                room -= v[k]
                profit += p[k]
                depth += 1
                top = k
                continue
            if full - c.scale * (margin - room + v[k]) + profit + p[k] <= found and branches < limit:
                continue  # even a margin filled to the last token with unpriced requests would not be better
            sofar = profit + p[k]
            value = best_pair(c, room - v[k], k, avail[k] - 1, found - sofar, ceiling - sofar, pair, 0)
            if value > NONE:
                found = sofar + value
                for j in range(depth):
                    out[slots + j] = out[j]
                out[slots + depth], out[2 * slots - 2], out[2 * slots - 1] = k, pair[0], pair[1]
            branches += SCAN
            scanned += k
            if found >= ceiling or branches >= limit:
                break
        elif depth == 0:
            exhausted = True
            break
        elif branches >= limit:  # many ways down may lead to no pattern at all
            break
        else:
            depth -= 1
            k = out[depth]
            avail[k] += 1
            room += v[k]
            profit -= p[k]
            top = k - 1
    for j in range(depth):
        avail[out[j]] += 1
    if found < least:
        return NONE, NONE if exhausted and least == NONE + 1 else ceiling
    out[:slots] = out[slots : 2 * slots]
    return found, found if exhausted or found >= ceiling else ceiling


@kernel
def _of_others(c: Choices, rest: int, room: int) -> int:
    """Return what the others of `rest` requests, three or four, are worth at most in so many tokens."""
    return c.pairs[room >> c.grain] if rest == 3 else c.triples[room >> c.grain]
