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
    value: Ints,
    merit: Floats,
    m: int,
    q: int,
    low: int,
    high: int,
    whole: int,
    spread: int,
    lists: Lists,
    found: Ints,
    found_merit: Floats,
) -> tuple[int, int]:
    """Write the positions of each subset as a row of `found` (cap, >= q), its merit to `found_merit` (cap,).

    Returns (how many, work). `value` (m,) and `merit` (m,) are the numbers, 1 <= q <= m, q < 60; `lists` is
    scratch that must suffice for both lists.

    Parameters
    ----------
    value, merit, m
        (m,) int64 and float64, the numbers and their merits.
    q, low, high
        Numbers of a subset, and the sums looked for.
    whole, spread
        1 where both lists are over all numbers; else how uneven a split between the halves may be.
    lists
        Scratch.
    found, found_merit
        (cap, >= q) int64 and (cap,) float64; written.
    """
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
    count = hits = 0
    for u in range(fewest, most + 1):
        a, a_end = start[u], start[u + 1]
        b, b_end = second_start[q - u], second_start[q - u + 1]
        short, short_end, long, long_end, order = a, a_end, b, b_end, whole
        if a_end - a > b_end - b:
            short, short_end, long, long_end, order = b, b_end, a, a_end, -whole
        count, hits, done = _join(
            lists, short, short_end, long, long_end, low, high, order, found, found_merit, count, hits
        )
        work += done
        if hits >= MOST_HITS:
            break
    return count, work


@kernel
def _grow(value: Ints, merit: Floats, begin: int, end: int, most: int, at: int, lists: Lists, start: Ints) -> int:
    """List the subsets of value[begin:end] with at most `most` members, fewest first; returns the end of the list.

    Those of u members stand from start[u] to start[u + 1]. Each grows from the one without its last.

    Parameters
    ----------
    value, merit
        (m,) int64 and float64, the numbers and their merits.
    begin, end, most
        The numbers that are used, and how many at most.
    at
        First free entry.
    lists, start
        The entries, and (64,) int64, where layers begin; written.
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
def _join(
    lists: Lists,
    a: int,
    a_end: int,
    b: int,
    b_end: int,
    low: int,
    high: int,
    order: int,
    found: Ints,
    found_merit: Floats,
    n: int,
    hits: int,
) -> tuple[int, int, int]:
    """Pairs of entries whose sum lies in [low, high]; a:a_end is thrown into buckets. Returns (kept, found, work).

    `order` = 1: all numbers of the entry from a:a_end must come first; -1: all of that from b:b_end; 0: no matter.

    Parameters
    ----------
    lists
        The entries; its table is overwritten.
    a, a_end, b, b_end
        The entries of both sides.
    low, high, order
        The sums looked for; see above.
    found, found_merit
        (cap, >= q) int64 and (cap,) float64; changed in place.
    n, hits
        Rows that are kept, and pairs found, so far.
    """
    if a == a_end or b == b_end:
        return n, hits, 0
    total, last, first, merits, table = lists.total, lists.last, lists.first, lists.merit, lists.table
    least = greatest = total[a]
    for e in range(a + 1, a_end):
        least = min(least, total[e])
        greatest = max(greatest, total[e])
    buckets = 1
    while buckets < a_end - a:
        buckets *= 2
    shift = 0
    while (greatest - least) >> shift >= buckets:
        shift += 1
    for k in range(buckets + 2):
        table[k] = 0
    for e in range(a, a_end):
        table[((total[e] - least) >> shift) + 2] += 1
    for k in range(2, buckets + 2):
        table[k] += table[k - 1]
    entries = buckets + 2
    for e in range(a, a_end):
        k = ((total[e] - least) >> shift) + 1
        table[entries + table[k]] = e
        table[k] += 1
    # now bucket k holds the entries from table[k] to table[k + 1]
    looked = 0
    for f in range(b, b_end):
        if f % _LOOK == 0 and out_of_time(lists.clock):
            break
        from_sum = low - total[f]
        to_sum = high - total[f]
        if to_sum < least or from_sum > greatest:
            continue
        k = (max(from_sum, least) - least) >> shift
        k_last = (min(to_sum, greatest) - least) >> shift
        looked += table[k_last + 1] - table[k]
        for at in range(table[k], table[k_last + 1]):
            e = table[entries + at]
            if from_sum <= total[e] <= to_sum:
                if (order == 1 and last[e] >= first[f]) or (order == -1 and last[f] >= first[e]):
                    continue
                hits += 1
                merit = merits[e] + merits[f]
                if n < found.shape[0]:
                    row = n
                    n += 1
                else:
                    row = 0
                    for r in range(1, n):
                        if found_merit[r] < found_merit[row]:
                            row = r
                    if merit <= found_merit[row]:
                        continue
                found_merit[row] = merit
                _write(lists, e, found[row], _write(lists, f, found[row], 0))
        if hits >= MOST_HITS:
            break
    return n, hits, looked + 2 * buckets + b_end - b


@kernel
def _write(lists: Lists, entry: int, positions: Ints, at: int) -> int:
    """Write the positions of an entry's numbers from positions[at] on; returns where they end.

    Parameters
    ----------
    lists, entry
        The entries, and one of them.
    positions, at
        (q,) int64, written from `at` on.
    """
    while lists.parent[entry] >= 0:
        positions[at] = lists.last[entry]
        at += 1
        entry = lists.parent[entry]
    return at
