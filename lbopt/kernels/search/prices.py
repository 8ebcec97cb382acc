"""Prices of size classes and the bound they prove.

Any prices lambda_k >= 0 (1/scale tokens for one request of class k) bound the tokens that a fleet can admit while no load
exceeds the envelope M:

    scale * T  <=  sum_k n_k lambda_k + sum_w max { sum of (scale v_k - lambda_k) over a pattern of worker w }.

The right side is evaluated in integers, so the bound is exact whatever the prices came from.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.exact_profits import exact_patterns
from lbopt.kernels.search.pattern import BRANCHES, SCAN, best_pattern, prefix_best, undominated
from lbopt.kernels.search.tables import TABLE, joined, one_more, tabulate_pairs, tabulate_triples

QUICK, EXACT = 0, 1


@kernel
def evaluate(
    M: int,
    scale: int,
    effort: int,
    v: Ints,
    n: Ints,
    price: Ints,
    load: Ints,
    slots: Ints,
    sums: Ints,
    short: Ints,
    table: Ints,
    value: Ints,
    bound: Ints,
    pattern: Ints,
) -> int:
    """Return scale times the bound on the admitted tokens at envelope M, or -2**62 where M admits nothing feasible.

    Workers come in ascending order of slots. Sets value[w], pattern[w, :slots[w]] (best pattern found) and bound[w]
    (what no pattern of worker w exceeds). An effort of QUICK leaves some bounds of workers with three or more slots
    above their values; EXACT does not, as long as memory lasts. `short` is scratch, (8, K or more): the classes that
    patterns of c slots may need; `table` is scratch, (2, TABLE + 1).
    """
    total = 0
    lowest = 0
    for k in range(v.size):
        total += n[k] * price[k]
        lowest = min(lowest, price[k])
    keep, vs, ps, ns, best, tops, p = short[0], short[1], short[2], short[3], short[4], short[5], short[6]
    for k in range(v.size):
        p[k] = scale * v[k] - price[k]
    first = 0
    while first < load.size:  # a group of workers with equally many slots
        c = slots[first]
        last = first
        while last < load.size and slots[last] == c:
            last += 1
        length, ceiling = undominated(c, p, n, keep, tops)
        for j in range(length):
            k = keep[j]
            vs[j], ps[j], ns[j] = v[k], p[k], n[k]
        prefix_best(length, ps, ns, best)
        limit = SCAN * 8 if c <= 4 else SCAN * 60 if c <= 6 else BRANCHES
        loose = 0
        for w in range(first, last):
            margin = M - load[w]
            full = scale * margin - c * lowest
            value[w], bound[w] = best_pattern(
                margin, c, scale, full, ceiling, limit, vs[:length], ps, ns, best, sums, pattern[w], tops
            )
            if bound[w] == -(1 << 62):
                return -(1 << 62)
            if value[w] < bound[w]:
                loose += 1
        if loose > 0 and c <= 6:
            loose = _relax(M, scale, lowest, c, first, last, length, load, vs, ps, ns, best, sums, tops, table, value, bound, pattern)
        if loose > 0 and effort > 0:
            _settle(M, c, first, last, length, load, vs, ps, ns, value, bound, pattern)
        for w in range(first, last):
            for q in range(c):
                pattern[w, q] = keep[pattern[w, q]]
            total += bound[w]
        first = last
    return total


@kernel
def _relax(
    M: int,
    scale: int,
    lowest: int,
    c: int,
    first: int,
    last: int,
    length: int,
    load: Ints,
    vs: Ints,
    ps: Ints,
    ns: Ints,
    best: Ints,
    sums: Ints,
    scratch: Ints,
    table: Ints,
    value: Ints,
    bound: Ints,
    pattern: Ints,
) -> int:
    """Lower the bounds of workers first..last, all with c of 3 to 6 slots, by relaxed tables; return how many stay loose."""
    reach = -1
    for w in range(first, last):
        if value[w] < bound[w] and M - load[w] <= TABLE:
            reach = max(reach, M - load[w])
    tabulate_pairs(length, reach, vs, ps, ns, table[0])
    if c >= 5:
        tabulate_triples(length, reach, vs, ps, table[0], table[1])
    loose = 0
    for w in range(first, last):
        margin = M - load[w]
        if value[w] == bound[w]:
            continue
        if margin > TABLE:
            loose += 1
            continue
        if c == 3:
            relaxed = one_more(margin, length, vs, ps, table[0])
        elif c == 4:
            relaxed = joined(margin, table[0], table[0])
        elif c == 5:
            relaxed = joined(margin, table[0], table[1])
        else:
            relaxed = joined(margin, table[1], table[1])
        bound[w] = min(bound[w], relaxed)
        if value[w] < bound[w]:
            full = scale * margin - c * lowest
            value[w], bound[w] = best_pattern(
                margin, c, scale, full, bound[w], BRANCHES, vs[:length], ps, ns, best, sums, pattern[w], scratch
            )
        if value[w] < bound[w]:
            loose += 1
    return loose


@kernel
def _settle(
    M: int,
    c: int,
    first: int,
    last: int,
    length: int,
    load: Ints,
    vs: Ints,
    ps: Ints,
    ns: Ints,
    value: Ints,
    bound: Ints,
    pattern: Ints,
) -> None:
    """Replace the loose bounds of workers first..last by exact values."""
    margins = np.full(last - first, -1)
    for w in range(first, last):
        if value[w] < bound[w]:
            margins[w - first] = M - load[w]
    if exact_patterns(c, margins, length, vs, ps, ns, value[first:last], pattern[first:last]):
        for w in range(first, last):
            if margins[w - first] >= 0:
                bound[w] = value[w]


@kernel
def threshold_prices(
    M: int,
    scale: int,
    v: Ints,
    n: Ints,
    price: Ints,
    load: Ints,
    slots: Ints,
    sums: Ints,
    short: Ints,
    table: Ints,
    value: Ints,
    bound: Ints,
    pattern: Ints,
    best_price: Ints,
) -> int:
    """Find the best prices of the form max(0, size - threshold); return their bound times scale.

    The bound is convex in the threshold, and its slope is (requests of at least the threshold that the patterns use)
    - (those that there are), so that bisection over the classes needs one evaluation a step.
    """
    low, high = 0, v.size
    lowest = 1 << 62
    above = 0
    while True:
        middle = (low + high + 1) >> 1
        threshold = v[middle] if middle < v.size else v[-1] + 1
        above = 0
        for k in range(v.size):
            price[k] = scale * max(0, v[k] - threshold)
            if v[k] >= threshold:
                above += n[k]
        total = evaluate(M, scale, QUICK, v, n, price, load, slots, sums, short, table, value, bound, pattern)
        if total < lowest or total == -(1 << 62):
            lowest = total
            for k in range(v.size):
                best_price[k] = price[k]
        if total == -(1 << 62):
            return total
        if low >= high:
            return lowest
        used = 0
        for w in range(load.size):
            for q in range(slots[w]):
                if pattern[w, q] >= 0 and v[pattern[w, q]] >= threshold:
                    used += 1
        if used > above:
            high = middle - 1
        else:
            low = middle
            if middle == high:
                return lowest
