"""From requests and workers to the terms of the search, and back; and cheap first assignments.

Requests come sorted by (size, whether they must be admitted, preference); `order` says who is where. Handing out takes
the first of a class first, to the lowest worker first: that, and nothing else, decides between equal requests.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import smallest_sums
from lbopt.kernels.search.state import Step
from lbopt.kernels.stable_order import stable_order


@kernel
def read(
    loads: Ints, slots: Ints, sizes: Ints, must: Ints, order: Ints, classes: Ints, workers: Ints, sums: Ints
) -> tuple[int, int, int, int, float]:
    """Group requests into classes and sort the open workers; return numbers of both, most and least tokens, magnitude.

    Writes the requests by (size, must, place) to `order`; sizes, copies and `must` of each class to the rows of
    `classes`; open workers ascending in slots, their loads, slots, and order of filling to those of `workers`; totals
    of the smallest requests to `sums`. The magnitude is what all numbers of an evaluation add up to, at a scale of 1.
    """
    order[:] = stable_order(2 * sizes + must)
    v, n, forced = classes[0], classes[1], classes[2]
    K = _group_requests(sizes, must, order, v, n, forced)
    W = 0
    for g in stable_order(slots):
        if slots[g] > 0:
            workers[0, W], workers[1, W], workers[2, W] = g, loads[g], slots[g]
            W += 1
    heaviest_first = stable_order(-workers[1, :W])
    workers[3, :W] = heaviest_first[stable_order(workers[2, :W][heaviest_first])]
    smallest_sums(v[:K], n[:K], sums)
    admitted = slots.sum()
    most = extreme_tokens(sizes, must, order, admitted, True)
    least = extreme_tokens(sizes, must, order, admitted, False)
    magnitude = 2.0 * loads.size * (loads.max() + float(workers[2, W - 1]) * v[K - 1])
    for i in range(sizes.size):
        magnitude += sizes[i]
    return K, W, most, least, magnitude


@kernel
def _group_requests(sizes: Ints, must: Ints, order: Ints, v: Ints, n: Ints, forced: Ints) -> int:
    """Fill the classes of the sorted requests; forced[k] says whether class k must be admitted. Return their number."""
    count = 0
    for i in order:
        if count > 0 and v[count - 1] == sizes[i] and forced[count - 1] == must[i]:
            n[count - 1] += 1
        else:
            v[count], n[count], forced[count] = sizes[i], 1, must[i]
            count += 1
    return count


@kernel
def extreme_tokens(sizes: Ints, must: Ints, order: Ints, admitted: int, most: bool) -> int:
    """Return the most tokens that `admitted` requests can bring, the forced ones among them, or the fewest."""
    total = 0
    for i in order:
        if must[i] == 1:
            total += sizes[i]
            admitted -= 1
    for j in range(order.size - 1, -1, -1):
        if admitted == 0:
            break
        i = order[j] if most else order[order.size - 1 - j]
        if must[i] == 0:
            total += sizes[i]
            admitted -= 1
    return total


@kernel
def hand_out(step: Step, answer: Ints, order: Ints, workers: Ints, open_worker: Ints, assignment: Ints) -> bool:
    """Set assignment[i] to the worker of request i, -1 = waits, for the classes in answer[w, :slots[w]].

    Returns whether every class of the answer exists.
    """
    n, slots = step.n, step.slots
    start = workers
    at = 0
    for k in range(n.size):
        start[k] = at
        at += n[k]
    for i in range(assignment.size):
        assignment[i] = -1
    for g in range(open_worker.size):
        w = open_worker[g]
        if w >= 0:
            for q in range(slots[w]):
                k = answer[w, q]
                if k < 0 or start[k] >= order.size:
                    return False
                i = order[start[k]]
                start[k] += 1
                if i < assignment.size:  # beyond are the empty requests that fill slots up
                    assignment[i] = g
    return True


@kernel
def first_assignment(loads: Ints, slots: Ints, sizes: Ints, must: Ints, order: Ints, assignment: Ints) -> int:
    """Write the cheapest of three assignments that are made at once, and return its cost."""
    G, N, admitted, best = loads.size, sizes.size, slots.sum(), -1
    now, room, tried = np.zeros(G, dtype=np.int64), np.zeros(G, dtype=np.int64), np.zeros(N, dtype=np.int64)
    chosen, flags = np.zeros(admitted, dtype=np.int64), np.zeros(N, dtype=np.int64)
    for rule in range(3 if admitted < N else 1):
        choose(order, must, admitted, rule, flags, chosen)
        cost = longest_first(loads, slots, sizes, chosen, tried, now, room)
        if best < 0 or cost < best:
            best = cost
            assignment[:] = tried
    return best


@kernel
def longest_first(loads: Ints, slots: Ints, sizes: Ints, chosen: Ints, assignment: Ints, now: Ints, room: Ints) -> int:
    """Place the requests `chosen`, in this order, each on the lightest worker with a free slot; return the cost."""
    G = loads.size
    total = 0
    top = 0
    for g in range(G):
        now[g], room[g] = loads[g], slots[g]
        total += loads[g]
        top = max(top, loads[g])
    for i in range(assignment.size):
        assignment[i] = -1
    for i in chosen:
        best = -1
        for g in range(G):
            if room[g] > 0 and (best < 0 or now[g] < now[best]):
                best = g
        now[best] += sizes[i]
        room[best] -= 1
        total += sizes[i]
        top = max(top, now[best])
        assignment[i] = best
    return G * top - total


@kernel
def choose(order: Ints, must: Ints, admitted: int, rule: int, flags: Ints, chosen: Ints) -> None:
    """Fill `chosen` with the requests to admit, largest first: the forced ones and some others.

    The others are the oldest (rule 0), the largest (1) or the smallest (2).
    """
    N = order.size
    left = admitted
    for i in range(N):
        flags[i] = must[i]
        left -= must[i]
    for j in range(N):
        if left == 0:
            break
        i = j if rule == 0 else order[N - 1 - j] if rule == 1 else order[j]
        if flags[i] == 0:
            flags[i] = 1
            left -= 1
    at = 0
    for j in range(N - 1, -1, -1):
        if flags[order[j]] == 1:
            chosen[at] = order[j]
            at += 1


@kernel
def hand_out_again(order: Ints, size: Ints, workers: Ints, assignment: Ints) -> None:
    """Give what each worker takes of every size to the first of that size in `order`, lowest worker first."""
    start = 0
    while start < order.size:
        end, taken = start, 0
        while end < order.size and size[order[end]] == size[order[start]]:
            g = assignment[order[end]]
            if g >= 0:  # sorted by insertion: few are of one size
                at = taken
                while at > 0 and workers[at - 1] > g:
                    workers[at] = workers[at - 1]
                    at -= 1
                workers[at] = g
                taken += 1
            end += 1
        for j in range(start, end):
            assignment[order[j]] = workers[j - start] if j - start < taken else -1
        start = end
