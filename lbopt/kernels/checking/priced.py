"""Check prices on ranges of envelopes: that no assignment of cost below a bound is left.

The reasoning is that of `lbopt.solvers.certificates.priced`, which says why it holds: at an envelope M, with prices of
classes and B_w the most profit of worker w, no assignment with loads up to M admits more tokens than
(sum of n_k price_k + sum of B_w) / scale, while one below the bound admits `needed` tokens. B_w is first taken from a
relaxation, and then exactly, worker after worker, until the range is refuted.

Here are plain ranges alone, without trees, and int64 alone: the caller makes sure that no number is too large.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.checking.best_profit import Priced, exceeds, last_within
from lbopt.kernels.compile import kernel

#: Steps of the exact searches of one check, some milliseconds; beyond, a range is left open.
STEPS = 300_000

#: Slots up to which the best few of all values are kept by insertion, not sorted.
_FEW = 32


@kernel
def grouped(sizes: Ints, must: Ints, v: Ints, n: Ints, forced: Ints) -> int:
    """Group requests that are sorted by size, of equal ones those that may wait first; return how many classes."""
    count = 0
    for i in range(sizes.size):
        if count > 0 and v[count - 1] == sizes[i] and forced[count - 1] == must[i]:
            n[count - 1] += 1
        else:
            v[count], n[count], forced[count] = sizes[i], 1, must[i]
            count += 1
    return count


@kernel
def sums_of_least(values: Ints, n: Ints, sign: int, sums: Ints) -> None:
    """Write the least totals of 0, 1, 2, ... values, each with its copies; of the largest ones where sign is -1."""
    Q = sums.size - 1
    if Q > _FEW:
        order = np.argsort(sign * values, kind="mergesort")
        at, left = 0, n[order[0]]
        sums[0] = 0
        for q in range(Q):
            while left == 0:
                at += 1
                left = n[order[at]]
            sums[q + 1] = sums[q] + values[order[at]]
            left -= 1
        return
    held = 0
    for k in range(values.size):
        value = sign * values[k]
        for _ in range(min(n[k], Q)):
            if held == Q and (Q == 0 or value >= sums[Q]):
                break
            q = held if held < Q else Q - 1
            while q > 0 and sums[q] > value:
                sums[q + 1] = sums[q]
                q -= 1
            sums[q + 1] = value
            held = min(held + 1, Q)
    sums[0] = 0
    for q in range(1, Q + 1):
        sums[q] = sums[q - 1] + sign * sums[q]


@kernel
def holds(
    load: Ints, slots: Ints, requests: Ints, bound: int, totals: tuple[int, int], scale: int, prices: Ints, nodes: Ints
) -> bool:
    """Whether prices refute every assignment of cost below `bound`; False where that is not shown.

    `requests` (2, N) are sizes, ascending, and 1 for those that must be admitted, among equals last; `totals` the least
    and the most tokens that can be admitted. A row of `nodes` is a range of envelopes and the row of `prices` that
    closes it; they ascend.
    """
    if bound <= 0:
        return True  # no cost is below 0
    sizes, must = requests[0], requests[1]
    v, n, forced = np.zeros_like(sizes), np.zeros_like(sizes), np.zeros_like(sizes)
    K = grouped(sizes, must, v, n, forced)
    if prices.shape[1] != K:
        return False
    v, n = v[:K], n[:K]
    G, Q, total = load.size, slots.max(), load.sum()
    lightest, caps, dues = np.zeros(Q + 1, np.int64), np.zeros(Q + 1, np.int64), np.zeros(Q + 1, np.int64)
    sums_of_least(v, n, 1, lightest)
    begin = load[0] + lightest[slots[0]]
    for w in range(1, G):
        begin = max(begin, load[w] + lightest[slots[w]])
    end = (bound - 1 + total + totals[1]) // G
    profit, top, path = np.zeros(K, np.int64), np.zeros(K, np.int64), np.zeros((3, Q + 1), np.int64)
    c = Priced(v, n, forced, profit, top, lightest, caps, dues, path, np.full(1, STEPS), scale)
    best = np.zeros(G, np.int64)
    before, missing = -1, begin
    for i in range(nodes.shape[0]):
        first, last, given = max(nodes[i, 0], begin), min(nodes[i, 1], end), nodes[i, 2]
        if not 0 <= given < prices.shape[0] or (given != before and not _set(c, prices[given])):
            return False
        before = given
        if first > last:
            continue
        if first > missing:
            return False
        needed = scale * max(totals[0], G * first - total - bound + 1)
        if not _refuted(c, load, slots, last, (n * prices[given]).sum() - needed, best):
            return False
        missing = max(missing, last + 1)
    return missing > end


@kernel
def _set(c: Priced, price: Ints) -> bool:
    """Write what depends on the prices alone; False where a class that may wait has a negative one."""
    profit, top = c.profit, c.top
    for k in range(c.v.size):
        if price[k] < 0 and c.forced[k] == 0:
            return False
        profit[k] = c.scale * c.v[k] - price[k]
        top[k] = k if k == 0 or profit[k] > profit[top[k - 1]] else top[k - 1]
    sums_of_least(profit, c.n, -1, c.caps)
    sums_of_least(price, c.n, 1, c.dues)
    return True


@kernel
def _refuted(c: Priced, load: Ints, slots: Ints, M: int, spare: int, best: Ints) -> bool:
    """Whether no assignment with loads up to M has a total profit of -spare or more."""
    for w in range(load.size):
        q, room = slots[w], M - load[w]
        if room < c.lightest[q]:
            return True  # this worker has no set at all
        if q == 0:
            best[w] = 0
        elif q == 1:
            best[w] = c.profit[c.top[last_within(c.v, room)]]
        else:
            best[w] = min(c.caps[q], c.scale * room - c.dues[q])
        spare += best[w]
    for few in range(2):  # pairs cost little, so they come first
        for w in range(load.size):
            if spare < 0:
                return True
            if slots[w] < 2 or (slots[w] == 2) == (few == 1):
                continue
            exact = exceeds(c, slots[w], M - load[w], best[w] - spare - 1)
            if exact < best[w]:
                spare -= best[w] - exact
    return spare < 0
