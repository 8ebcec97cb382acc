"""The exact best pattern of many slots: one table over (requests, tokens), shared by all workers that need it.

best[c, r] is the largest profit of exactly c requests with total at most r, after the requests taken up so far:

    best[c, r] = max(best[c, r], p_i + best[c - 1, r - v_i])      one request i after the other, c from large to small.

taken[i, c, r] remembers whether request i raised the entry, so that a best pattern can be read off backwards. The
relaxed tables of `tables` may use a request twice; this one never does. It costs (requests x slots x tokens) steps
and is consulted only where the relaxed bounds are not good enough.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed, used_up
from lbopt.kernels.search.state import NONE, Search, Step
from lbopt.kernels.search.tables import joined

#: Largest table of decisions, entries (bytes).
LARGEST = 64_000_000

#: Entries of which a unit of work is booked: half a nanosecond each.
_UNIT = 1 << 11

_LESS = -(1 << 60)


@kernel
def exact_patterns(c: int, margins: Ints, v: Ints, p: Ints, n: Ints, value: Ints, pattern: Ints, deadline: int) -> bool:
    """Set value[j] and pattern[j, :c] to the best pattern for margins[j].

    Returns False where the table would be too large, or the deadline passed before.

    A margin below 0 is passed over.
    """
    reach = -1
    for margin in margins:
        reach = max(reach, margin)
    requests = 0
    for k in range(v.size):
        requests += min(n[k], c)
    if reach > LARGEST or requests * (c + 1) * (reach + 1) > LARGEST:
        return False
    best = np.full((c + 1, reach + 1), _LESS)
    taken = np.zeros((requests, c + 1, reach + 1), dtype=np.uint8)
    of = np.zeros(requests, dtype=np.int64)
    for r in range(reach + 1):
        best[0, r] = 0
    i = 0
    for k in range(v.size):
        size, profit = v[k], p[k]
        for _ in range(min(n[k], c)):
            if passed(deadline):
                return False
            of[i] = k
            for d in range(min(c, i + 1), 0, -1):
                row, below, mark = best[d], best[d - 1], taken[i, d]
                for r in range(size, reach + 1):
                    candidate = profit + below[r - size]
                    if candidate > row[r]:
                        row[r] = candidate
                        mark[r] = 1
            i += 1
    for j in range(margins.size):
        r = margins[j]
        if r < 0:
            continue
        value[j] = best[c, r]
        d = c
        for i in range(requests - 1, -1, -1):
            if d > 0 and taken[i, d, r] == 1:
                d -= 1
                pattern[j, d] = of[i]
                r -= v[of[i]]
        # largest class first, as everywhere
        for q in range(c // 2):
            pattern[j, q], pattern[j, c - 1 - q] = pattern[j, c - 1 - q], pattern[j, q]
    return True


@kernel
def settle(step: Step, search: Search, M: int, c: int, first: int, last: int) -> None:
    """Replace the loose bounds of workers first..last, all with c slots, by exact values, where memory allows.

    The list for c slots has been made; for five and six slots search.pairs and search.triples hold its pairs and
    triples.
    """
    value, bound, load, pairs, grain = search.value, search.bound, step.load, search.pairs, search.listed.grain
    margins = np.full(last - first, -1)
    for w in range(first, last):
        if value[w] < bound[w]:
            margins[w - first] = M - load[w]
    length = search.lists[c].length
    v, p, n = search.list_size[c, :length], search.list_profit[c, :length], search.list_count[c, :length]
    # Only classes that can be part of something better than what is known.
    classes = np.zeros(length, dtype=np.int64)
    kept = 0
    for k in range(length):
        if used_up(search.known):
            return
        useful = False
        for w in range(first, last):
            rest = margins[w - first] - v[k]
            if rest < 0 or useful:
                continue
            search.known.work += (rest >> grain) // _UNIT
            if c == 5:
                useful = p[k] + joined(rest, grain, pairs, pairs) > value[w]
            elif c == 6:
                useful = p[k] + joined(rest, grain, pairs, search.triples) > value[w]
            else:
                useful = True
        if useful:
            classes[kept] = k
            kept += 1
    classes = classes[:kept]
    profit = np.full(last - first, NONE)
    pattern = np.zeros((last - first, c), dtype=np.int64)
    deadline = search.known.deadline
    if exact_patterns(c, margins, v[classes], p[classes], n[classes], profit, pattern, deadline):
        most, copies = 0, 0
        for margin in margins:
            most = max(most, margin)
        for k in classes:
            copies += min(n[k], c)
        search.known.work += copies * c * most // _UNIT
        for w in range(first, last):
            if margins[w - first] < 0:
                continue
            if profit[w - first] > value[w]:
                value[w] = profit[w - first]
                for q in range(c):
                    search.pattern[w, q] = classes[pattern[w - first, q]]
            bound[w] = value[w]
