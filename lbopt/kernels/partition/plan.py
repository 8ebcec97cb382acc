"""How many hits to expect from a search, and the cheapest search that expects enough.

Sums of q of m numbers with standard deviation d are about normal with deviation d * sqrt(q * (m - q) / (m - 1)), so a
window of w sums near their mean holds about

    E(q, m) = C(m, q) * w / (2.5 * d * sqrt(q * (m - q) / (m - 1)))

subsets, at the cost of the list entries of `subset_sums`. From a pool with one number for each 1 / density units of
size, the m in the middle have d = 0.29 * m / density; the m outermost of n numbers have up to d = 0.5 * n / density.
The searches of the table below run from about density hits an entry (q = 4) to 20,000 * density (q = 10): the rarer
a hit, the larger the q that pays, if the worker has as many slots.
"""

import math

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

RICH = 4.0  # hits expected where there is a choice
MOST_ENTRIES = 1 << 18  # of both lists together
LARGEST_WHOLE = 6  # beyond, halves have fewer entries

# searches: q of m numbers, by the entries of their lists
_SEARCHES = np.array(
    [
        (4, 40),  # 780
        (2, 500),  # 1,000
        (4, 62),  # 1,900
        (4, 100),  # 5,000
        (8, 40),  # 9,700
        (6, 40),  # 9,900
        (5, 40),  # 11,000
        (10, 36),  # 17,000
        (4, 200),  # 20,000
        (3, 200),  # 20,000
        (16, 32),  # 26,000
        (12, 36),  # 37,000
        (6, 62),  # 38,000
        (14, 34),  # 39,000
        (5, 62),  # 40,000
        (10, 44),  # 53,000
        (8, 62),  # 63,000
        (9, 44),  # 67,000
        (7, 62),  # 72,000
        (4, 500),  # 120,000
        (3, 500),  # 120,000
        (10, 52),  # 130,000
        (12, 44),  # 150,000
        (16, 38),  # 150,000
        (14, 40),  # 160,000
        (6, 100),  # 160,000
        (5, 100),  # 170,000
        (8, 80),  # 180,000
        (9, 56),  # 240,000
    ],
    dtype=np.int64,
)
SUBSETS_OF, OUT_OF = np.ascontiguousarray(_SEARCHES.T)


@kernel
def choose(m: int, k: int) -> float:
    """The binomial coefficient, as a float."""
    product = 1.0
    for i in range(k):
        product *= (m - i) / (i + 1)
    return product


@kernel
def expected_hits(value: Ints, m: int, q: int, low: int, high: int) -> float:
    """Estimate how many q-subsets of the numbers value[:m] have their sum in [low, high]."""
    mean = 0.0
    for p in range(m):
        mean += value[p]
    mean /= m
    variance = 0.0
    for p in range(m):
        variance += (value[p] - mean) ** 2
    deviation = 0.3
    if m > 1:
        deviation += math.sqrt(variance / m * q * (m - q) / (m - 1))
    off = max(0.0, low - q * mean, q * mean - high) / deviation
    share = min(1.0, (high - low + 1.0) / (2.5066 * deviation))
    return choose(m, q) * share * math.exp(-min(50.0, off * off / 2))


@kernel
def list_entries(m: int, q: int, whole: int, spread: int) -> float:
    """Count the entries that `find_subsets` joins."""
    if whole:
        return choose(m, q // 2) + choose(m, q - q // 2)
    half = m // 2
    entries = 0.0
    for u in range(max(0, q - (m - half), q // 2 - spread), min(q, half, (q + 1) // 2 + spread) + 1):
        entries += choose(half, u) + choose(m - half, q - u)
    return entries


@kernel
def grown_entries(m: int, q: int, whole: int, spread: int) -> float:
    """Count the entries that `find_subsets` writes: with those of fewer numbers, from which the others grow."""
    first = m if whole else m // 2
    second = m if whole else m - first
    fewest = q // 2 if whole else max(0, q - second, q // 2 - spread)
    most = q // 2 if whole else min(q, first, (q + 1) // 2 + spread)
    entries = 0.0
    for u in range(most + 1):
        entries += choose(first, u)
    for u in range(q - fewest + 1):
        entries += choose(second, u)
    return entries


@kernel
def choose_search(value: Ints, n: int, slots: int, outer_only: int) -> tuple[int, int, int, int]:
    """Choose (q, m, outer, rich) for a worker of `slots` requests from the ascending pool value[:n].

    The first search that expects RICH hits for one sum, first among the m requests at both ends of the pool
    (outer = 1), else among those in its middle (0); if none does, the one with most hits for its cost.
    """
    q_best, m_best, outer_best, ratio = min(slots, 2), min(n, 500), 0, 0.0
    for outer in (1, 0):
        if outer_only and not outer:
            break
        for s in range(SUBSETS_OF.size):
            q = min(SUBSETS_OF[s], slots)
            m = min(OUT_OF[s], n - (slots - q))
            if (SUBSETS_OF[s] > slots and slots > 3) or (q > slots - 2 and outer):
                continue  # one request is to be the very end, one to make up for it
            hits = _richness(value, n, q, m, outer)
            if hits >= RICH:
                return q, m, outer, 1
            per_entry = hits / (list_entries(m, q, 1 if q <= LARGEST_WHOLE else 0, 0) + 500)
            if per_entry > ratio:
                q_best, m_best, outer_best, ratio = q, m, outer, per_entry
    return q_best, m_best, outer_best, 0


@kernel
def _richness(value: Ints, n: int, q: int, m: int, outer: int) -> float:
    """Hits that a search for one sum amid all expects, q // 2 numbers of one half of the m, the others of the rest."""
    half = m // 2
    spread = 0.1
    if outer:
        spread += _variance(value, 0, half) * (q // 2) + _variance(value, n - (m - half), m - half) * (q - q // 2)
        subsets = choose(half, q // 2) * choose(m - half, q - q // 2)
    else:
        spread += _variance(value, (n - m) // 2, m) * q * (m - q) / max(1, m - 1)
        subsets = choose(m, q)
        if q > LARGEST_WHOLE:
            subsets = choose(half, q // 2) * choose(m - half, q - q // 2) * (1 + q % 2)
    return subsets / (2.5066 * math.sqrt(spread))


@kernel
def _variance(value: Ints, begin: int, m: int) -> float:
    mean = 0.0
    for p in range(begin, begin + m):
        mean += value[p]
    mean /= max(1, m)
    variance = 0.0
    for p in range(begin, begin + m):
        variance += (value[p] - mean) ** 2
    return variance / max(1, m)
