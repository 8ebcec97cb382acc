"""All patterns of a worker that lose at most a budget against its best one, at given prices.

A pattern's loss is (bound of the worker) - (profit of the pattern), in 1/scale tokens. A solution that admits T tokens
loses D - scale T in all, D being the bound that the prices prove: so to beat a target only patterns within
D - scale target matter, and for few slots they can be listed.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.pattern import last_fitting, prefix_best
from lbopt.kernels.search.state import Search, Step

#: Slots of the workers whose patterns are listed.
MOST_LISTED = 6

#: Branches, of about 20 steps each, for every pattern that may be listed, and at most, after which a worker counts as
#: not listed.
BRANCHES_EACH, MOST_BRANCHES = 20, 100_000


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
    """Append the patterns of c <= MOST_LISTED requests within `margin` and of profit >= need from row `start` on.

    Returns the end of the list, or -1 where more than `room` patterns qualify or too many branches are to be looked at.

    Parameters
    ----------
    margin, c
        Tokens that a pattern may take; slots.
    scale, need, lowest
        Units of a price in a token; least profit and least price, 1/scale tokens.
    v, p, n
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens; requests. `n` is changed and put back.
    best
        int64 (K,), from `prefix_best`.
    start, room
        First row to write; most rows.
    items, profit
        int64 (R, MOST_LISTED) and (R,), written: classes, and profit in 1/scale tokens.
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
    # the c - 2 largest one after the other, from the top down; the last two by two pointers
    chosen = np.zeros(MOST_LISTED, dtype=np.int64)
    most = min(MOST_BRANCHES, BRANCHES_EACH * room)
    depth, worth, branches = 0, 0, 0
    k = last_fitting(v, margin)
    while True:
        rest = c - depth - 1  # besides the one to be chosen
        while k >= 0 and (
            n[k] == 0
            or worth + p[k] + rest * p[best[k]] < need
            or worth + p[k] + scale * (margin - v[k]) - rest * lowest < need
        ):
            k -= 1
        if k >= 0 and v[k] <= margin:
            branches += 1
            chosen[depth] = k
            n[k] -= 1
            margin -= v[k]
            worth += p[k]
            depth += 1
            if depth < c - 2:
                continue
            before = end
            end = _list_pairs(
                margin, k, depth, scale, need - worth, lowest, v, p, n, best, end, start, room, items, profit
            )
            for row in range(before, end):
                for q in range(depth):
                    items[row, q] = chosen[q]
                profit[row] += worth
            branches += 1 + k // 20
        elif k >= 0:
            k -= 1
            continue
        failed = end < 0 or branches > most
        if depth == 0:
            return end
        while True:  # take the last one back, all of them where this has failed
            depth -= 1
            k = chosen[depth]
            n[k] += 1
            margin += v[k]
            worth -= p[k]
            if not failed or depth == 0:
                break
        if failed:
            return -1
        k -= 1


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
    """Append the pairs of classes 0..last with profit >= need, written to columns at, at + 1.

    Parameters
    ----------
    margin, last, at
        Tokens that a pair may take; largest class; first column to write.
    scale, need, lowest
        Units of a price in a token; least profit and least price, 1/scale tokens.
    v, p, n
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens; requests.
    best
        int64 (K,), from `prefix_best`.
    end, start, room
        Next row to write; first row of the list; most rows.
    items, profit
        int64 (R, MOST_LISTED) and (R,), written: classes, and profit in 1/scale tokens.
    """
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
    too many slots, more than `most` such patterns, or no time left.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    M
        Envelope, tokens.
    budget, most
        Largest loss, 1/scale tokens; most patterns of a worker.
    """
    v, n, load, slots = step.v, step.n, step.load, step.slots
    price, bound, first, last = search.price, search.bound, search.first, search.last
    items, loss, p, best = search.items, search.loss, search.profit, search.best
    scale = step.scale
    lowest = 0
    for k in range(v.size):
        p[k] = scale * v[k] - price[k]
        lowest = min(lowest, price[k])
    prefix_best(v.size, p, n, best)
    end = 0
    for w in range(load.size):
        first[w] = last[w] = -1
        if slots[w] > MOST_LISTED or end + most > loss.size or used_up(search.known):
            continue
        need = bound[w] - budget
        stop = list_patterns(M - load[w], slots[w], scale, need, lowest, v, p, n, best, end, most, items, loss)
        if stop < 0:
            continue
        for j in range(end, stop):
            loss[j] = bound[w] - loss[j]
        _sort(items, loss, end, stop, slots[w])
        first[w], last[w] = end, stop
        end = stop
    return end


@kernel
def _after(loss: Ints, items: Ints, j: int, key: int, row: Ints, c: int) -> bool:
    """Whether row j belongs after the pattern `row` of loss `key`: larger loss, or else smaller classes.

    Parameters
    ----------
    loss, items, j
        int64 (R,) and (R, MOST_LISTED): losses, 1/scale tokens, and classes; the row.
    key, row, c
        Loss, and int64 (c,) classes, of the pattern to compare with; slots.
    """
    if loss[j] != key:
        return loss[j] > key
    for q in range(c):
        if items[j, q] != row[q]:
            return items[j, q] < row[q]
    return False


@kernel
def _sort(items: Ints, loss: Ints, start: int, end: int, c: int) -> None:
    """Shell sort of the rows start..end by loss, then by classes: no two rows are equal, so the order is unique.

    Parameters
    ----------
    items, loss
        int64 (R, MOST_LISTED) and (R,), sorted in place: classes; losses, 1/scale tokens.
    start, end, c
        Rows start..end - 1; slots.
    """
    row = np.zeros(MOST_LISTED, dtype=np.int64)
    gap = 1
    while gap < (end - start) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, end):
            key = loss[i]
            for q in range(c):
                row[q] = items[i, q]
            j = i
            while j >= start + gap and _after(loss, items, j - gap, key, row, c):
                loss[j] = loss[j - gap]
                for q in range(c):
                    items[j, q] = items[j - gap, q]
                j -= gap
            loss[j] = key
            for q in range(c):
                items[j, q] = row[q]
        gap //= 3
