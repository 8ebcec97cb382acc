"""Average ranks of distances, and what they multiply to with fixed ranks: exactly, and as a bracket that is cheaper.

Ranks are taken twice and about their mean, r = 2 rank - (P + 1): whole numbers, also where ties share a rank. Sums of
products stay below 2^53 for P <= 100,000 and so are exact in float64.

Exactly: values fall into bins by a monotone map, bins are laid out one after the other, and each is sorted by itself;
with a few values a bin that is linear in P. The bracket (`bracket`) stops at the bins: with m values in a bin, and each
of them given the bin's mean rank, the true sum of products differs by at most sqrt(W * (T - sum of s^2 / m)), W the sum
of m (m^2 - 1) / 3 over bins, T the sum of squares of the fixed ranks, and s the sum of those in a bin: Cauchy and
Schwarz, first within bins, then over them.
"""

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

Places = NDArray[np.int32]

#: Longer bins are sorted by a library, shorter ones by insertion.
SHORT = 24
#: Where the count stands in a bin's tally, above the sum.
SHIFT = 40
ONE = 1 << SHIFT
#: Bits of a key that hold the place of a value.
PLACE = 17


@kernel
def bracket(
    values: Floats, packed: Ints, fixed_squares: float, low: float, scale: float, tally: Ints, places: Places
) -> tuple[float, float]:
    """Return bounds of the rank correlation of `values` with the fixed ranks.

    Parameters
    ----------
    values
        float64 (P,).
    packed
        int64 (P,), the fixed ranks as `pack` returns them: one addition then counts a value and sums its rank.
    fixed_squares
        Sum of squares of the fixed ranks, > 0.
    low, scale
        The map of values to bins.
    tally, places
        int64 (bins,) and int32 (P,), scratch.
    """
    tally[:] = 0
    count(values, packed, low, scale, tally, places)
    return bracket_of(tally, values.size, fixed_squares)


@kernel
def count(values: Floats, packed: Ints, low: float, scale: float, tally: Ints, places: Places) -> None:
    """Add values to the tally of their bins.

    Parameters
    ----------
    values, packed, low, scale, places
        As of `bracket`.
    tally
        int64 (bins,), added to.
    """
    top = tally.size - 1.0
    for p in range(values.size):  # apart from the next loop, because this one runs in vector registers
        places[p] = np.int32(min(max((values[p] - low) * scale, 0.0), top))
    for p in range(values.size):
        tally[places[p]] += packed[p]


@kernel
def bracket_of(tally: Ints, P: int, fixed_squares: float) -> tuple[float, float]:
    """Return the bounds that `bracket` gives, from the tally of all P values."""
    product, within, between, before = 0.0, 0.0, 0.0, 0.0
    for b in range(tally.size):
        if tally[b] > 0:
            m = float(tally[b] >> SHIFT)
            total = float(tally[b] & (ONE - 1)) - m * P
            product += (2.0 * before + m - P) * total
            within += m * (m * m - 1.0) / 3.0
            between += total * total / m
            before += m
    most = P * (float(P) * P - 1.0) / 3.0
    slack = np.sqrt(within * max(fixed_squares - between, 0.0))
    least, greatest = product - slack, product + slack
    narrow, wide = np.sqrt(max(most - within, 0.0) * fixed_squares), np.sqrt(most * fixed_squares)
    # the spread of the values lies between narrow and wide: which of them is farther out depends on the sign
    lower = least / (wide if least >= 0.0 else narrow) if narrow > 0.0 else -1.0
    upper = greatest / (narrow if greatest >= 0.0 else wide) if narrow > 0.0 else 1.0
    return lower - 1e-12, upper + 1e-12


@kernel
def pack(fixed: Floats) -> Ints:
    """Return 2^40 + rank + P of each fixed rank, int64 (P,): P of them sum to less than 2^40 in the lower half."""
    packed = np.empty(fixed.size, np.int64)
    for p in range(fixed.size):
        packed[p] = ONE + np.int64(fixed[p]) + fixed.size
    return packed


@kernel
def correlation(
    values: Floats,
    fixed: Floats,
    fixed_squares: float,
    low: float,
    scale: float,
    starts: Ints,
    places: Places,
    keys: Ints,
) -> float:
    """Return the rank correlation of `values` with `fixed`; 0 where all values are equal.

    Parameters
    ----------
    values
        float64 (P,), whole, from 0 to 2^45, and at most 2^17 of them.
    fixed
        float64 (P,), the fixed ranks.
    fixed_squares, low, scale
        As of `bracket`.
    starts
        int64 (bins + 1,), scratch.
    places
        int32 (P,), scratch.
    keys
        int64 (P,), left with value * 2^17 + place in ascending order.
    """
    P, bins = values.size, starts.size - 1
    starts[:] = 0
    for p in range(P):
        places[p] = np.int32(min(max((values[p] - low) * scale, 0.0), bins - 1.0))
    for p in range(P):
        starts[places[p] + 1] += 1
    for b in range(bins):
        starts[b + 1] += starts[b]
    for p in range(P):
        b = places[p]
        keys[starts[b]] = (np.int64(values[p]) << PLACE) + p
        starts[b] += 1
    begin = 0
    for b in range(bins):  # starts[b] is now the end of bin b
        end = starts[b]
        if end - begin > SHORT:
            keys[begin:end] = np.sort(keys[begin:end])
        else:
            _insertion_sort(keys, begin, end)
        begin = end
    product, squares = 0.0, 0.0
    begin = 0
    while begin < P:
        value = keys[begin] >> PLACE
        end, partners = begin, 0.0
        while end < P and keys[end] >> PLACE == value:
            partners += fixed[keys[end] & (2**PLACE - 1)]
            end += 1
        rank = float(begin + end - P)
        product += rank * partners
        squares += rank * rank * (end - begin)
        begin = end
    return product / np.sqrt(squares * fixed_squares) if squares > 0.0 else 0.0


@kernel
def _insertion_sort(keys: Ints, begin: int, end: int) -> None:
    for p in range(begin + 1, end):
        key = keys[p]
        q = p
        while q > begin and keys[q - 1] > key:
            keys[q] = keys[q - 1]
            q -= 1
        keys[q] = key
