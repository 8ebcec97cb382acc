"""Prices of size classes and the bound they prove.

Any prices lambda_k >= 0 (1/scale tokens for one request of class k) bound the tokens that a fleet can admit while no load
exceeds the envelope M:

    scale * T  <=  sum_k n_k lambda_k + sum_w max { sum of (scale v_k - lambda_k) over a pattern of worker w }.

The right side is evaluated in integers, so the bound is exact whatever the prices came from.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import best_pattern, prefix_best, undominated


@kernel
def evaluate(
    M: int,
    scale: int,
    v: Ints,
    n: Ints,
    price: Ints,
    load: Ints,
    slots: Ints,
    sums: Ints,
    short: Ints,
    value: Ints,
    bound: Ints,
    pattern: Ints,
) -> int:
    """Return scale times the bound on the admitted tokens at envelope M, or -2**62 where M admits nothing feasible.

    Workers come in ascending order of slots. Sets value[w], pattern[w, :slots[w]] (best pattern found) and bound[w]
    (what no pattern of worker w exceeds). `short` is scratch, (7, K): the classes that patterns of c slots may need.
    """
    total = 0
    lowest = 0
    for k in range(v.size):
        total += n[k] * price[k]
        lowest = min(lowest, price[k])
    keep, vs, ps, ns, best, tops, p = short[0], short[1], short[2], short[3], short[4], short[5], short[6]
    for k in range(v.size):
        p[k] = scale * v[k] - price[k]
    c = 0
    length, ceiling = 0, 0
    for w in range(load.size):
        if slots[w] != c:
            c = slots[w]
            length, ceiling = undominated(c, p, n, keep, tops)
            for j in range(length):
                k = keep[j]
                vs[j], ps[j], ns[j] = v[k], p[k], n[k]
            prefix_best(ps[:length], ns[:length], best)
        margin = M - load[w]
        full = scale * margin - c * lowest
        value[w], bound[w] = best_pattern(
            margin, c, scale, full, ceiling, vs[:length], ps, ns, best, sums, pattern[w], tops
        )
        if bound[w] == -(1 << 62):
            return -(1 << 62)
        for q in range(c):
            pattern[w, q] = keep[pattern[w, q]]
        total += bound[w]
    return total


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
        total = evaluate(M, scale, v, n, price, load, slots, sums, short, value, bound, pattern)
        if total == -(1 << 62):
            best_price[:] = price
            return total
        if total < lowest or (total == lowest and price.sum() < best_price.sum()):
            lowest = total
            best_price[:] = price
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
