"""Subsets of q of m numbers whose sum lies in a window, by meeting in the middle (Horowitz and Sahni 1974).

Two lists of smaller subsets are joined: one is thrown into buckets by sum, the other looks up what it lacks, which
costs some steps for each list entry however narrow the window is. Two ways to make the lists:

whole    (small q) subsets of u = q // 2 and of q - u of *all* numbers; a pair counts if all numbers of the first
         come before all of the second, so every subset is found once. C(m, u) + C(m, q - u) entries.
halves   (large q) subsets of the first and of the second half of the numbers, for every split q = u + v with
         |u - v| <= 2 * spread + 1. `spread` >= q leaves none out; a small one misses the subsets that lie unevenly in
         the halves, and saves most of the entries.

Beyond the deadline the lists are left as they are: what is found in them is still a subset.

Each number has a merit, and where there are more subsets than are kept, those of the greatest merit are.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.partition.state import Lists

MOST_HITS = 4000  # after which no more are looked for
_LOOK = 1024  # entries between two looks at the clock


@kernel
def find_subsets(
    lists: Lists, value: Ints, merit: Floats, q: int, low: int, high: int, whole: int, spread: int
) -> tuple[int, int]:
    """Write the positions of each subset as a row of lists.picks, its merit to lists.merits; return how many, and work.

    `value` (m,) and `merit` (m,) are the numbers, 1 <= q <= m, q < 60; the sum of a subset lies in [low, high].
    """
    m, clock = value.size, lists.clock
    first_end = m if whole else m // 2
    second_begin = 0 if whole else first_end
    if whole:
        fewest = most = q // 2
    else:
        fewest = max(0, q - (m - second_begin), q // 2 - spread)
        most = min(q, first_end, (q + 1) // 2 + spread)
    start, second_start = lists.start, lists.second_start
    end = _grow(value, merit, 0, first_end, most, 0, lists, start)
    end = _grow(value, merit, second_begin, m, q - fewest, end, lists, second_start)
    work = 2 * end
    clock.kept = clock.hits = 0
    for u in range(fewest, most + 1):
        a, b = (start[u], start[u + 1]), (second_start[q - u], second_start[q - u + 1])
        if a[1] - a[0] > b[1] - b[0]:
            work += _join(lists, b, a, low, high, -whole)
        else:
            work += _join(lists, a, b, low, high, whole)
        if clock.hits >= MOST_HITS:
            break
    return clock.kept, work


@kernel
def _grow(value: Ints, merit: Floats, begin: int, end: int, most: int, at: int, lists: Lists, start: Ints) -> int:
    """List the subsets of value[begin:end] with at most `most` members, fewest first; returns the end of the list.

    Those of u members stand from start[u] to start[u + 1]. Each grows from the one without its last.
    """
    total, parent, last, first, merits = lists.total, lists.parent, lists.last, lists.first, lists.merit
    total[at] = 0
    merits[at] = 0.0
    last[at] = begin - 1
    first[at] = end
    parent[at] = -1
    start[0] = at
    start[1] = at + 1
    n = at + 1
    for u in range(1, most + 1):
        for e in range(start[u - 1], start[u]):
            if e % _LOOK == 0 and out_of_time(lists.clock):
                break
            for i in range(last[e] + 1, end):
                total[n] = total[e] + value[i]
                merits[n] = merits[e] + merit[i]
                parent[n] = e
                last[n] = i
                first[n] = i if u == 1 else first[e]
                n += 1
        start[u + 1] = n
    return n


@kernel
def _throw(lists: Lists, begin: int, end: int) -> tuple[int, int, int, int]:
    """Throw entries begin..end into buckets by sum; return the least sum, the largest, the shift, and how many buckets.

    Bucket k holds the entries from table[k] to table[k + 1], counted from behind the buckets.
    """
    total, table = lists.total, lists.table
    least = greatest = total[begin]
    for e in range(begin + 1, end):
        least = min(least, total[e])
        greatest = max(greatest, total[e])
    buckets, shift = 1, 0
    while buckets < end - begin:
        buckets *= 2
    while (greatest - least) >> shift >= buckets:
        shift += 1
    table[: buckets + 2] = 0
    for e in range(begin, end):
        table[((total[e] - least) >> shift) + 2] += 1
    for k in range(2, buckets + 2):
        table[k] += table[k - 1]
    for e in range(begin, end):
        k = ((total[e] - least) >> shift) + 1
        table[buckets + 2 + table[k]] = e
        table[k] += 1
    return least, greatest, shift, buckets


@kernel
def _join(lists: Lists, a: tuple[int, int], b: tuple[int, int], low: int, high: int, order: int) -> int:
    """Keep pairs of entries whose sum lies in [low, high]; those of a are thrown into buckets. Returns the work.

    `order` = 1: all numbers of the entry from a must come first; -1: all of that from b; 0: no matter.
    """
    if a[0] == a[1] or b[0] == b[1]:
        return 0
    total, last, first, table = lists.total, lists.last, lists.first, lists.table
    least, greatest, shift, buckets = _throw(lists, a[0], a[1])
    looked = 0
    for f in range(b[0], b[1]):
        if f % _LOOK == 0 and out_of_time(lists.clock):
            break
        from_sum, to_sum = low - total[f], high - total[f]
        if to_sum < least or from_sum > greatest:
            continue
        k = (max(from_sum, least) - least) >> shift
        k_last = (min(to_sum, greatest) - least) >> shift
        looked += table[k_last + 1] - table[k]
        for at in range(table[k], table[k_last + 1]):
            e = table[buckets + 2 + at]
            if from_sum <= total[e] <= to_sum:
                if (order == 1 and last[e] >= first[f]) or (order == -1 and last[f] >= first[e]):
                    continue
                _keep(lists, e, f)
        if lists.clock.hits >= MOST_HITS:
            break
    return looked + 2 * buckets + b[1] - b[0]


@kernel
def _keep(lists: Lists, e: int, f: int) -> None:
    """Keep a pair of entries, in the place of that of the least merit where there is no room."""
    clock, merits = lists.clock, lists.merits
    clock.hits += 1
    merit = lists.merit[e] + lists.merit[f]
    row = 0
    if clock.kept < lists.picks.shape[0]:
        row = clock.kept
        clock.kept += 1
    else:
        for r in range(1, clock.kept):
            if merits[r] < merits[row]:
                row = r
        if merit <= merits[row]:
            return
    merits[row] = merit
    _write(lists, e, lists.picks[row], _write(lists, f, lists.picks[row], 0))


@kernel
def _write(lists: Lists, entry: int, positions: Ints, at: int) -> int:
    """Write the positions of an entry's numbers from positions[at] on; returns where they end."""
    while lists.parent[entry] >= 0:
        positions[at] = lists.last[entry]
        at += 1
        entry = lists.parent[entry]
    return at
