"""All patterns of a worker whose total lies in a window and whose profit is no less than what is needed.

Depth first, the largest request first, any number of slots. A branch is left when what is still to be chosen cannot
lift the total into the window, cannot keep it there, or cannot bring the profit that is missing.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting


@kernel
def list_window(
    v: Ints,
    avail: Ints,
    p: Ints,
    c: int,
    lo: int,
    hi: int,
    need: int,
    room: int,
    most: int,
    items: Ints,
    start: int,
) -> tuple[int, int, bool]:
    """Write the patterns of c requests with lo <= total <= hi and profit >= need to rows start, start + 1, ...

    Parameters
    ----------
    v, avail, p
        int64 (K,): sizes, tokens, ascending; requests left (changed and put back); profits, 1/scale tokens.
    c, lo, hi, need
        Slots; least and largest total, tokens; least profit, 1/scale tokens.
    room, most
        Most rows; most branches.
    items, start
        int64 (R, Q), written from row `start` on: classes, largest first.

    Returns
    -------
    end, branches, complete
        The end of the rows; branches looked at; False where there are more rows than `room`, or than `most` branches
        lead to.
    """
    K = v.size
    top = np.empty(K, dtype=np.int64)  # the best profit of a class 0..k
    small = np.zeros(c + 1, dtype=np.int64)
    best, count = -(1 << 60), 0
    for k in range(K):
        if avail[k] > 0:
            best = max(best, p[k])
        top[k] = best
        for _ in range(min(avail[k], c - count)):
            count += 1
            small[count] = small[count - 1] + v[k]
    if count < c:
        return start, 1, True
    chosen, complete = np.zeros(c, dtype=np.int64), True
    end, branches, depth, total, worth = start, 0, 0, 0, 0
    k = last_fitting(v, hi - small[c - 1])
    while True:
        rest = c - depth - 1
        found = False
        if rest == 0:
            while k >= 0 and total + v[k] >= lo:
                if avail[k] > 0 and worth + p[k] >= need:
                    if end - start == room or end == items.shape[0]:
                        complete = False
                        break
                    for q in range(depth):
                        items[end, q] = chosen[q]
                    items[end, depth] = k
                    end += 1
                branches += 1
                k -= 1
        else:
            while k >= 0 and total + v[k] * (rest + 1) >= lo and worth + (rest + 1) * top[k] >= need:
                branches += 1
                if avail[k] > 0 and worth + p[k] + rest * top[k] >= need:
                    found = True
                    break
                k -= 1
        if found and complete and branches <= most:
            chosen[depth] = k
            avail[k] -= 1
            total += v[k]
            worth += p[k]
            depth += 1
            k = min(k, last_fitting(v, hi - total - small[c - depth - 1]))
            continue
        complete = complete and branches <= most
        if depth == 0:
            return end, branches, complete
        while True:  # take the last one back, all of them where this has failed
            depth -= 1
            k = chosen[depth]
            avail[k] += 1
            total -= v[k]
            worth -= p[k]
            if complete or depth == 0:
                break
        if not complete:
            return end, branches, False
        k -= 1
