"""Profit tables over residual tokens: what the best two, or three, requests with a total of at most r are worth.

A table is shared by all workers of an evaluation. It is relaxed in one respect: joining two parts may use a class more
often than it has requests. So the values below are upper bounds, and exact wherever the joined parts do not collide;
they serve as ceilings at which the search for a pattern of three to six requests stops.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

#: Largest residual that is tabulated, tokens.
TABLE = 1 << 15

_NONE = -(1 << 61)


@kernel
def tabulate_pairs(length: int, reach: int, v: Ints, p: Ints, n: Ints, pairs: Ints) -> None:
    """Set pairs[r] to the largest profit of two requests of the first `length` classes with total at most r <= reach."""
    for r in range(reach + 1):
        pairs[r] = _NONE
    for i in range(length):
        if 2 * v[i] <= reach and n[i] >= 2 and 2 * p[i] > pairs[2 * v[i]]:
            pairs[2 * v[i]] = 2 * p[i]
        for j in range(i):
            r = v[i] + v[j]
            if r > reach:
                break
            if p[i] + p[j] > pairs[r]:
                pairs[r] = p[i] + p[j]
    for r in range(1, reach + 1):
        if pairs[r - 1] > pairs[r]:
            pairs[r] = pairs[r - 1]


@kernel
def tabulate_triples(length: int, reach: int, v: Ints, p: Ints, pairs: Ints, triples: Ints) -> None:
    """Set triples[r] to an upper bound on the profit of three requests with total at most r <= reach."""
    for r in range(reach + 1):
        triples[r] = _NONE
    for i in range(length):
        size, profit = v[i], p[i]
        for r in range(size, reach + 1):
            value = profit + pairs[r - size]
            if value > triples[r]:
                triples[r] = value


@kernel
def joined(margin: int, left: Ints, right: Ints) -> int:
    """Return the largest left[r] + right[margin - r]."""
    top = 2 * _NONE
    for r in range(margin + 1):
        value = left[r] + right[margin - r]
        if value > top:
            top = value
    return top


@kernel
def one_more(margin: int, length: int, v: Ints, p: Ints, table: Ints) -> int:
    """Return the largest profit of one request and a part from the table, within `margin`."""
    top = 2 * _NONE
    for k in range(length):
        if v[k] > margin:
            break
        value = p[k] + table[margin - v[k]]
        if value > top:
            top = value
    return top
