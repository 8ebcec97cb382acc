"""Check prices on ranges of envelopes: that no assignment of cost below a bound is left.

The reasoning is that of `lbopt.solvers.certificates.priced`, which says why it holds: at an envelope M, with prices of
classes and B_w the most profit of worker w, no assignment with loads up to M admits more tokens than
(sum of n_k price_k + sum of B_w) / scale, while one below the bound admits `needed` tokens. B_w is first taken from a
relaxation, and then exactly, worker after worker, until the range is refuted.

Here are plain ranges alone, without trees, and int64 alone: the caller makes sure that no number is too large.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.checking.best_profit import exceeds, last_within
from lbopt.kernels.compile import kernel

#: Steps of the exact searches of one check, some milliseconds; beyond, a range is left open.
STEPS = 300_000

#: In place of a row of prices: any may refute the range, the newest are tried first.
ANY = -1

#: Slots up to which the best few of all values are kept by insertion, not sorted.
_FEW = 32


@kernel
def grouped(sizes: Ints, must: Ints, v: Ints, n: Ints, forced: Ints) -> int:
    """Group requests that are sorted by size, of equal ones those that may wait first; return how many classes.

    Parameters
    ----------
    sizes, must
        int64 (N,): tokens; 1 where a request must be admitted, else 0.
    v, n, forced
        int64 (N,), written up to the number of classes: size, requests, 1 where they must be admitted.
    """
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
    """Write the least totals of 0, 1, 2, ... values, each with its copies; of the largest ones where sign is -1.

    Parameters
    ----------
    values, n
        int64 (K,); copies.
    sign, sums
        1 or -1; int64 (Q + 1,), written. Copies for Q values are there.
    """
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
    load: Ints,
    slots: Ints,
    sizes: Ints,
    must: Ints,
    bound: int,
    least: int,
    most: int,
    scale: int,
    prices: Ints,
    nodes: Ints,
) -> bool:
    """Whether prices refute every assignment of cost below `bound`; False where that is not shown.

    Parameters
    ----------
    load, slots
        int64 (G,): tokens before; requests that each worker takes.
    sizes, must
        int64 (N,): the requests, as many as slots at least, as `grouped` wants them.
    bound, least, most
        Cost; tokens that are admitted at least and at most.
    scale, prices
        Units of a price in a token; int64 (P, K), a row for each vector of prices.
    nodes
        int64 (R, 3): first and last envelope and the row of prices of each range, ascending in the first; in place of
        ANY the row that refutes it is written.
    """
    if bound <= 0:
        return True  # no cost is below 0
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
    end = (bound - 1 + total + most) // G
    profit, top = np.zeros(K, np.int64), np.zeros(K, np.int64)
    best, path = np.zeros(G, np.int64), np.zeros((3, Q + 1), np.int64)
    steps = np.full(1, STEPS)
    before, missing = -1, begin
    for i in range(nodes.shape[0]):
        first, last, given = max(nodes[i, 0], begin), min(nodes[i, 1], end), nodes[i, 2]
        if first > last:
            nodes[i, 2] = max(0, given)
            continue
        if first > missing:
            return False
        needed = scale * max(least, G * first - total - bound + 1)
        refuted = False
        row = prices.shape[0] - 1 if given == ANY else given
        while not refuted and row >= (0 if given == ANY else given):
            if row != before:
                if not _set(v, n, forced, scale, prices[row], profit, top, caps, dues):
                    return False
                before = row
            spare = (n * prices[row]).sum() - needed
            refuted = _refuted(
                *(load, slots, v, n, profit, top, lightest, caps, dues, scale, last, spare, best, path, steps)
            )
            row -= 1
        if not refuted:
            return False
        nodes[i, 2] = row + 1
        missing = max(missing, last + 1)
    return missing > end


@kernel
def _set(
    v: Ints, n: Ints, forced: Ints, scale: int, price: Ints, profit: Ints, top: Ints, caps: Ints, dues: Ints
) -> bool:
    """Write what depends on the prices alone; False where a class that may wait has a negative one.

    Parameters
    ----------
    v, n, forced, scale, price
        As in `holds`, of the classes.
    profit, top, caps, dues
        Written, as in `exceeds`.
    """
    for k in range(v.size):
        if price[k] < 0 and forced[k] == 0:
            return False
        profit[k] = scale * v[k] - price[k]
        top[k] = k if k == 0 or profit[k] > profit[top[k - 1]] else top[k - 1]
    sums_of_least(profit, n, -1, caps)
    sums_of_least(price, n, 1, dues)
    return True


@kernel
def _refuted(
    load: Ints,
    slots: Ints,
    v: Ints,
    n: Ints,
    profit: Ints,
    top: Ints,
    lightest: Ints,
    caps: Ints,
    dues: Ints,
    scale: int,
    M: int,
    spare: int,
    best: Ints,
    path: Ints,
    steps: Ints,
) -> bool:
    """Whether no assignment with loads up to M has a total profit of -spare or more.

    Parameters
    ----------
    load, slots, v, n, profit, top, lightest, caps, dues, scale
        As above, and in `exceeds`.
    M, spare
        Envelope; what prices leave before the profits of the workers.
    best, path, steps
        int64 (G,), scratch; as in `exceeds`.
    """
    for w in range(load.size):
        c, room = slots[w], M - load[w]
        if room < lightest[c]:
            return True  # this worker has no set at all
        if c == 0:
            best[w] = 0
        elif c == 1:
            best[w] = profit[top[last_within(v, room)]]
        else:
            best[w] = min(caps[c], scale * room - dues[c])
        spare += best[w]
    for few in range(2):  # pairs cost little, so they come first
        for w in range(load.size):
            if spare < 0:
                return True
            c = slots[w]
            if c < 2 or (c == 2) == (few == 1):
                continue
            exact = exceeds(
                *(v, n, profit, top, lightest, caps, dues, scale, c, M - load[w], best[w] - spare - 1, path, steps)
            )
            if exact < best[w]:
                spare -= best[w] - exact
    return spare < 0
