"""Depth-first search for the pattern of most profit: classes in descending order of their reduced profits.

A branch is left where the bound of the multipliers does not exceed the best profit. A second bound is for few large
requests: of j requests within a margin r the i-th largest has at most r / i, so that they are worth at most the sum
over i of p(r / i), where p(r) is the most profit of one request of at most r, a table over grains of the margin.

The search is cut off after so many steps, or where a limit of the solve is reached; then it returns the bound beside
the best pattern that it has found.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.state import Search, book
from lbopt.kernels.deadline import used_up

#: Grains of a margin, and the profit of a grain that nothing fits; sums of a few of these are far from an overflow.
BUCKETS = 512
_NOTHING = -(1 << 56)

#: Looks at a candidate that a step counts as; steps between two looks at the limits of the solve.
_STEP, _LOOK = 32, 4096


@kernel
def search_deep(s: Search, count: int, q: int, offset: int, bound: int, best: int, found: int) -> tuple[int, int]:
    """Return bound and profit of q candidates, by depth-first search in the order s.order."""
    stack, repeats, start, sums = s.stack, s.repeats, s.start, s.sums
    profit, reduced, order, number, weights = s.profit, s.reduced, s.order, s.number, s.weights
    d, steps, look, tops = 0, 0, _LOOK, s.tops
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
        descended, before = False, steps
        while place < count:
            steps += 1
            c = order[place]
            if hope + rest * reduced[c] <= best:
                break  # all that follow are worth less
            if weights[0, c] > room or weights[1, c] > one or weights[2, c] > two:
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
        book(s, _STEP * (steps - before))
        if steps >= look:
            look = 0 if used_up(s.known) else steps + _LOOK
        if d >= 0 and (steps > s.effort.steps or look == 0):
            return max(best, bound), found
    return best, found


@kernel
def _fill_tops(s: Search, count: int, q: int, r: int) -> int:
    """Write the most profit of one request by what it takes of limit r; return the grain, 0 where r never binds."""
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
