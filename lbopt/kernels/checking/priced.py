"""Check prices on ranges of envelopes: that no assignment of cost below a bound is left.

The reasoning is that of `lbopt.solvers.certificates.priced`, which says why it holds: at an envelope M, with prices of
classes and B_w the most profit of worker w, no assignment with loads up to M admits more tokens than (sum of n_k
price_k + sum of B_w) / scale, while one below the bound admits `needed` tokens. B_w is first taken from a relaxation,
and then exactly, worker after worker, until the range is refuted.

Here are plain ranges alone, without trees, and int64 alone: what is too large for that is not settled.

Whether a worker can fill its slots with a profit above a limit is found exactly, by depth-first search. A set of
requests is written with its classes descending, so that every set has one place in the tree. The last two requests are
found at once: for each class the partner of most profit below it is looked up in prefix maxima.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Bools, Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel

#: Stands for "no set fits"; below every profit, and far enough from the end of the integers to be added to.
NOTHING = -(1 << 61)


@by_reference
class Priced(NamedTuple):
    """Classes under prices, and what follows from both."""

    v: Ints  # (K,) sizes, ascending
    n: Ints  # (K,) requests
    forced: Ints  # (K,) 1 for those that must be admitted
    profit: Ints  # (K,) of one request
    top: Ints  # (K,) class of most profit up to each class
    lightest: Ints  # (Q + 1,) least totals of 0, 1, 2, ... sizes
    caps: Ints  # (Q + 1,) largest totals of profits
    dues: Ints  # (Q + 1,) least totals of prices
    path: Ints  # (3, Q + 1) scratch
    steps: Ints  # (1,) steps that are left
    scale: int  # units of a price in a token


@kernel
def last_within(v: Ints, room: int) -> int:
    """Return the last class of size at most `room`, -1 for none; v ascends."""
    low, high = 0, v.size
    while low < high:
        middle = (low + high) // 2
        if v[middle] <= room:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel
def best_pair(c: Priced, room: int, last: int, taken: int) -> int:
    """Return the most profit of two requests of classes up to `last`, of which `taken` copies are gone."""
    v, n, profit, top = c.v, c.n, c.profit, c.top
    best = NOTHING
    second = min(last_within(v, room - v[0]), last)
    partner = -1
    for k in range(second, -1, -1):  # the room for the partner grows as k falls
        left = n[k] - (taken if k == last else 0)
        if left <= 0:
            continue
        while partner + 1 < v.size and v[partner + 1] <= room - v[k]:
            partner += 1
        j = min(partner, k if left >= 2 else k - 1)
        if j >= 0:
            best = max(best, profit[k] + profit[top[j]])
    return best


@kernel
def exceeds(c: Priced, slots: int, room: int, known: int) -> int:
    """Return the most profit of `slots` requests in `room` if it is above `known`, else `known`.

    Where `steps` ends, what is returned is a number above the most profit all the same: that of a relaxation.
    """
    v, n, profit, top, lightest, caps, dues = c.v, c.n, c.profit, c.top, c.lightest, c.caps, c.dues
    scale, steps, path = c.scale, c.steps, c.path
    kind, rooms, value = path[0], path[1], path[2]
    if slots == 1:
        k = last_within(v, room)
        return max(known, profit[top[k]]) if k >= 0 else known
    depth = 0
    kind[0] = last_within(v, room - lightest[slots - 1])
    rooms[0], value[0] = room, 0
    best = known
    while depth >= 0:
        steps[0] -= 1
        if steps[0] < 0:
            return max(best, min(caps[slots], scale * room - dues[slots]))
        rest = slots - depth
        if rest == 2:
            end = kind[depth]
            same = 0
            for d in range(depth):
                same += kind[d] == end
            pair = best_pair(c, rooms[depth], end, same)
            steps[0] -= end // 16
            if pair > NOTHING:
                best = max(best, value[depth] + pair)
            depth -= 1
            if depth >= 0:
                kind[depth] -= 1
            continue
        k = kind[depth]
        if k < 0:
            depth -= 1
            if depth >= 0:
                kind[depth] -= 1
            continue
        taken = 0
        for d in range(depth):
            taken += kind[d] == k
        most = value[depth] + min(rest * profit[top[k]], min(caps[rest], scale * rooms[depth] - dues[rest]))
        if most <= best:  # smaller classes have no more
            depth -= 1
            if depth >= 0:
                kind[depth] -= 1
            continue
        left = rooms[depth] - v[k]
        with_it = value[depth] + profit[k]
        hope = with_it + min(caps[rest - 1], scale * left - dues[rest - 1])
        if taken >= n[k] or left < lightest[rest - 1] or hope <= best:
            kind[depth] -= 1
            continue
        rooms[depth + 1], value[depth + 1] = left, with_it
        kind[depth + 1] = min(k, last_within(v, left - lightest[rest - 2]))
        depth += 1
    return best


#: Steps of the exact searches of one check, some milliseconds; beyond, a range is left open.
STEPS = 300_000

#: Free slots up to which requests of size zero fill them up, and what no number of a check exceeds.
MOST_SLOTS, LARGEST = 1 << 16, float(1 << 61)

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
def holds(load: Ints, slots: Ints, sizes: Ints, must: Bools, bound: int, scale: int, prices: Ints, nodes: Ints) -> bool:
    """Whether prices refute every assignment of cost below `bound`; False where that is not shown.

    A row of `nodes` is a range of envelopes and the row of `prices` that closes it; they ascend.
    """
    if bound <= 0:
        return True  # no cost is below 0
    admitted, N = slots.sum(), sizes.size
    if admitted > MOST_SLOTS or not _fits(load, sizes, bound, scale, prices, nodes):
        return False
    count = max(N, admitted)  # requests of size zero fill slots up
    keys = np.zeros(count, np.int64)
    for i in range(N):
        keys[i] = 2 * sizes[i] + must[i]
    keys.sort()
    tokens, due = keys >> 1, keys & 1
    most, least = _extreme_totals(tokens, due, admitted)
    v, n, forced = np.zeros_like(keys), np.zeros_like(keys), np.zeros_like(keys)
    K = grouped(tokens, due, v, n, forced)
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
        needed = scale * max(least, G * first - total - bound + 1)
        if not _refuted(c, load, slots, last, (n * prices[given]).sum() - needed, best):
            return False
        missing = max(missing, last + 1)
    return missing > end


@kernel
def _fits(load: Ints, sizes: Ints, bound: int, scale: int, prices: Ints, nodes: Ints) -> bool:
    """Whether no sum of the check exceeds an int64; floats are near enough to tell, and never overflow."""
    largest, heaviest, price = 0.0, float(load.max()), 0.0
    for i in range(sizes.size):
        largest = max(largest, float(sizes[i]))
    for i in range(nodes.shape[0]):
        heaviest = max(heaviest, float(nodes[i, 1]))
        if nodes[i, 0] < 0:
            return False
    for row in range(prices.shape[0]):
        for k in range(prices.shape[1]):
            price = max(price, abs(float(prices[row, k])))
    count = sizes.size + float(MOST_SLOTS)
    units = float(scale) * (count * largest + 2.0 * load.size * heaviest + abs(float(bound)))
    return units + 2.0 * count * price < LARGEST


@kernel
def _extreme_totals(sizes: Ints, must: Ints, admitted: int) -> tuple[int, int]:
    """Return the most and the fewest tokens of `admitted` requests, those that must be admitted among them."""
    most, least, left = 0, 0, admitted - must.sum()
    high, low = left, left
    for i in range(sizes.size):
        j = sizes.size - 1 - i
        if must[i] == 1:
            most, least = most + sizes[i], least + sizes[i]
        elif low > 0:
            least, low = least + sizes[i], low - 1
        if must[j] == 0 and high > 0:
            most, high = most + sizes[j], high - 1
    return most, least


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
