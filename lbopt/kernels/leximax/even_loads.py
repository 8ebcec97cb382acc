"""The most even loads that boxes and a fixed sum allow, and the order in which loads are compared.

Loads x_w with lo_w <= x_w <= hi_w and a given sum are most even, and least when sorted from the largest down, where
water stands at one level between the boxes: x_w = clip(level, lo_w, hi_w), one less for some where the sum does not
come out (the integer points of such a set have a least element in the majorisation order: Marshall, Olkin and Arnold,
Inequalities, chapter 5). Whatever assignments there are, none has lesser sorted loads.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def water(lo: Ints, hi: Ints, total: int, out: Ints) -> bool:
    """Fill out[:] with the most even loads in lo..hi of sum `total`; False where there are none.

    Parameters
    ----------
    lo, hi
        int64 (W,): least and largest load, tokens.
    total
        Sum of the loads, tokens.
    out
        int64 (W,), written; not `lo` or `hi`.
    """
    low, high, least, most = 1 << 62, -(1 << 62), 0, 0
    for w in range(lo.size):
        if lo[w] > hi[w]:
            return False
        low, high = min(low, lo[w]), max(high, hi[w])
        least += lo[w]
        most += hi[w]
    if not least <= total <= most:
        return False
    while low < high:  # the least level that holds as much
        middle = (low + high) >> 1
        held = 0
        for w in range(lo.size):
            held += min(max(middle, lo[w]), hi[w])
        if held >= total:
            high = middle
        else:
            low = middle + 1
    held = 0
    for w in range(lo.size):
        out[w] = min(max(low, lo[w]), hi[w])
        held += out[w]
    for w in range(lo.size):
        if held > total and out[w] == low and lo[w] < low:
            out[w] -= 1
            held -= 1
    return True


@kernel
def compared(ascending: Ints, best: Ints) -> int:
    """Compare loads, sorted upwards, with `best`, sorted downwards, the largest first: -1 less, 0 equal, 1 greater."""
    size = best.size
    for j in range(size):
        d = ascending[size - 1 - j] - best[j]
        if d != 0:
            return -1 if d < 0 else 1
    return 0
