"""All patterns of a worker that lose at most a budget against its best one, at given prices.

A pattern's loss is (bound of the worker) - (profit of the pattern), in 1/scale tokens. A solution that admits T tokens
loses D - scale T in all, D being the bound that the prices prove: so to beat a target only patterns within
D - scale target matter, and for c <= 3 slots they can be listed.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting, prefix_best
from lbopt.kernels.search.terms import SCALE, Search, Step


@kernel
def list_patterns(
    margin: int,
    c: int,
    scale: int,
    need: int,
    lowest: int,
    v: Ints,
    p: Ints,
    n: Ints,
    best: Ints,
    start: int,
    room: int,
    items: Ints,
    profit: Ints,
) -> int:
    """Append the patterns of c = 1, 2 or 3 requests within `margin` and of profit >= need from row `start` on.

    Returns the end of the list, or -1 where more than `room` patterns qualify.
    """
    end = start
    if c == 1:
        for k in range(last_fitting(v, margin), -1, -1):
            if scale * v[k] - lowest < need:
                break
            if n[k] > 0 and p[k] >= need:
                if end - start >= room:
                    return -1
                items[end, 0], profit[end] = k, p[k]
                end += 1
        return end
    if c == 2:
        return _list_pairs(margin, v.size - 1, 0, scale, need, lowest, v, p, n, best, start, start, room, items, profit)
    for i in range(last_fitting(v, margin), -1, -1):
        if n[i] == 0 or p[i] + 2 * p[best[i]] < need:
            continue
        if scale * margin - (scale * v[i] - p[i]) - 2 * lowest < need:
            continue
        before = end
        n[i] -= 1
        end = _list_pairs(
            margin - v[i], i, 1, scale, need - p[i], lowest, v, p, n, best, end, start, room, items, profit
        )
        n[i] += 1
        if end < 0:
            return -1
        for row in range(before, end):
            items[row, 0] = i
            profit[row] += p[i]
    return end


@kernel
def _list_pairs(
    margin: int,
    last: int,
    at: int,
    scale: int,
    need: int,
    lowest: int,
    v: Ints,
    p: Ints,
    n: Ints,
    best: Ints,
    end: int,
    start: int,
    room: int,
    items: Ints,
    profit: Ints,
) -> int:
    """Append the pairs of classes 0..last with profit >= need, written to columns at, at + 1."""
    j = last
    for i in range(last + 1):
        if n[i] == 0:
            continue
        while j >= 0 and v[i] + v[j] > margin:
            j -= 1
        if j < 0:
            break
        q = min(i, j)
        if p[i] + p[best[q]] < need:
            continue
        rest = need - p[i]
        for partner in range(q, -1, -1):
            if scale * v[partner] - lowest < rest:
                break
            if p[partner] >= rest and n[partner] > (1 if partner == i else 0):
                if end - start >= room:
                    return -1
                items[end, at], items[end, at + 1], profit[end] = i, partner, p[i] + p[partner]
                end += 1
    return end


@kernel
def list_all(step: Step, search: Search, M: int, budget: int, most: int) -> int:
    """List every worker's patterns that lose at most `budget`, in ascending order of loss; return the number of rows.

    Losses are measured at search.price against search.bound. first[w] = last[w] = -1 marks workers without a list:
    more than three slots, or more than `most` such patterns.
    """
    v, n, load, slots = step.v, step.n, step.load, step.slots
    price, bound, first, last = search.price, search.bound, search.first, search.last
    items, loss, p, best = search.items, search.loss, search.short[0], search.short[1]
    scale = step.facts[SCALE]
    lowest = 0
    for k in range(v.size):
        p[k] = scale * v[k] - price[k]
        lowest = min(lowest, price[k])
    prefix_best(v.size, p, n, best)
    end = 0
    for w in range(load.size):
        first[w] = last[w] = -1
        if slots[w] > 3 or end + most > loss.size:
            continue
        need = bound[w] - budget
        stop = list_patterns(M - load[w], slots[w], scale, need, lowest, v, p, n, best, end, most, items, loss)
        if stop < 0:
            continue
        for j in range(end, stop):
            loss[j] = bound[w] - loss[j]
        _sort(items, loss, end, stop)
        first[w], last[w] = end, stop
        end = stop
    return end


@kernel
def _after(loss: Ints, items: Ints, j: int, key: int, a: int, b: int, c: int) -> bool:
    """Whether row j belongs after the row (key; a, b, c): larger loss, or else smaller classes."""
    if loss[j] != key:
        return loss[j] > key
    if items[j, 0] != a:
        return items[j, 0] < a
    if items[j, 1] != b:
        return items[j, 1] < b
    return items[j, 2] < c


@kernel
def _sort(items: Ints, loss: Ints, start: int, end: int) -> None:
    """Shell sort of the rows start..end by loss, then by classes: no two rows are equal, so the order is unique."""
    gap = 1
    while gap < (end - start) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, end):
            key, a, b, c = loss[i], items[i, 0], items[i, 1], items[i, 2]
            j = i
            while j >= start + gap and _after(loss, items, j - gap, key, a, b, c):
                loss[j] = loss[j - gap]
                items[j, 0], items[j, 1], items[j, 2] = items[j - gap, 0], items[j - gap, 1], items[j - gap, 2]
                j -= gap
            loss[j], items[j, 0], items[j, 1], items[j, 2] = key, a, b, c
        gap //= 3
