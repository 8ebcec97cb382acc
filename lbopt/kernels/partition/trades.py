"""Trades of one or two requests for as many: excess wanders from worker to worker until one of them can take it.

Swaps of single requests (`swaps`) end where no pair of workers has the difference that is needed. With seven requests a
worker, two workers have 49 differences of single requests and 441 of pairs, so that among some hundred partners nearly
every transfer of a few tokens is to be had exactly. A worker above the target hands its excess over to a worker
below it, if that lessens the sum of all excesses, else to one at the target, exactly: nothing is lost, and other
partners come within reach. What a worker lacks wanders likewise. The sum of all excesses never grows.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.draw import draw

#: Requests of a worker up to which its pairs are listed.
MOST_HELD = 24

#: A pair of ranks is one number: the first one times this, plus the second one.
_BASE = 64


@kernel
def trade_down(
    sizes: Ints, target: int, work_limit: int, load: Ints, assignment: Ints, dice: Ints, deadline: int
) -> int:
    """Trade until every load is at most `target`, or the work is used up; return the work done.

    Parameters
    ----------
    sizes
        (N,) int64, sizes in tokens. No worker has more than `MOST_HELD` of them.
    target, work_limit
        A load in tokens, and the work after which it ends.
    load, assignment
        (G,) int64, tokens, and (N,) int64, workers; changed in place.
    dice
        (1,) int64, state of the draws.
    deadline
        Nanoseconds, see `lbopt.kernels.deadline`; where it passes, all work counts as done.
    """
    G = load.size
    count = np.zeros(G, np.int64)
    for i in range(sizes.size):
        count[assignment[i]] += 1
    Q = count.max()
    held = np.zeros((G, Q), np.int64)
    count[:] = 0
    ascending = np.argsort(sizes, kind="mergesort")
    for r in range(sizes.size):
        g = assignment[ascending[r]]
        held[g, count[g]] = ascending[r]
        count[g] += 1
    most = Q * (Q - 1) // 2
    sums, pairs = np.zeros((G, most), np.int64), np.zeros((G, most), np.int64)
    below, place = np.zeros(G, np.int64), np.full(G, -1)  # the workers below the target, and where each stands
    lacking = 0
    for g in range(G):
        _list_pairs(sizes, held[g], count[g], sums[g], pairs[g])
        if count[g] > 0 and load[g] < target:
            below[lacking], place[g] = g, lacking
            lacking += 1
    work, heavy, blocked = 2 * sizes.size, 0, 0
    while work < work_limit and blocked < G:
        if passed(deadline):
            return work_limit
        passed_over = 0
        while passed_over < G and load[heavy] <= target:
            heavy = heavy + 1 if heavy + 1 < G else 0
            passed_over += 1
        work += passed_over
        if load[heavy] <= target:
            break
        excess = load[heavy] - target
        giver, partner, kind, out, back = heavy, -1, 0, 0, 0
        first = draw(dice, max(1, lacking))
        for t in range(lacking):
            w = below[first + t - lacking if first + t >= lacking else first + t]
            most_moved = max(target - load[w], excess + target - load[w] - 1)
            work += count[heavy] ** 2 + count[w] ** 2
            kind, out, back = _transfer(sizes, held, count, sums, pairs, heavy, w, excess, most_moved)
            if kind > 0:
                partner = w
                break
        if partner < 0:
            wanders = lacking > 0 and draw(dice, 2) == 0
            if wanders:  # what some worker lacks wanders
                giver = -1
                partner = below[draw(dice, lacking)]
            first = draw(dice, G)
            for t in range(G):
                w = first + t - G if first + t >= G else first + t
                if load[w] > target or w == partner or count[w] == 0:
                    continue
                work += count[w] ** 2 + count[partner if wanders else heavy] ** 2
                if wanders:
                    missing = target - load[partner]
                    kind, out, back = _transfer(sizes, held, count, sums, pairs, w, partner, missing, missing)
                    if kind > 0:
                        giver = w
                        break
                else:
                    kind, out, back = _transfer(sizes, held, count, sums, pairs, heavy, w, excess, excess)
                    if kind > 0:
                        partner = w
                        break
        if kind == 0:
            blocked += 1
            heavy = heavy + 1 if heavy + 1 < G else 0
            continue
        blocked = 0
        work += 4 * (count[giver] ** 2 + count[partner] ** 2)
        moved = _carry_out(sizes, held, count, giver, partner, kind, out, back, assignment)
        load[giver] -= moved
        load[partner] += moved
        for g in (giver, partner):
            _list_pairs(sizes, held[g], count[g], sums[g], pairs[g])
            if load[g] < target and place[g] < 0:
                below[lacking], place[g] = g, lacking
                lacking += 1
            elif load[g] >= target and place[g] >= 0:
                lacking -= 1
                last = below[lacking]
                below[place[g]], place[last] = last, place[g]
                place[g] = -1
    return work


@kernel
def _list_pairs(sizes: Ints, held: Ints, count: int, sums: Ints, pairs: Ints) -> None:
    """Write the sums of all pairs of a worker's requests in ascending order, and the ranks of each pair.

    Parameters
    ----------
    sizes, held, count
        (N,) int64; requests of the worker in ascending order, and how many.
    sums, pairs
        int64, written.
    """
    n = 0
    for i in range(count):
        for j in range(i + 1, count):
            both, p = sizes[held[i]] + sizes[held[j]], n
            while p > 0 and sums[p - 1] > both:
                sums[p], pairs[p] = sums[p - 1], pairs[p - 1]
                p -= 1
            sums[p], pairs[p] = both, i * _BASE + j
            n += 1


@kernel
def _transfer(
    sizes: Ints, held: Ints, count: Ints, sums: Ints, pairs: Ints, giver: int, taker: int, least: int, most: int
) -> tuple[int, int, int]:
    """Return a trade that moves least..most tokens: how many requests each gives (0: none), and the ranks of these.

    Parameters
    ----------
    sizes, held, count
        (N,) int64; (G, .) requests of the workers in ascending order, (G,) how many.
    sums, pairs
        (G, .) int64, see `_list_pairs`.
    giver, taker, least, most
        The workers, and what is to be moved from the first to the second.
    """
    p, own, other = 0, held[giver], held[taker]
    for i in range(count[giver]):
        size = sizes[own[i]]
        while p < count[taker] and sizes[other[p]] < size - most:
            p += 1
        if p == count[taker]:
            break
        if sizes[other[p]] <= size - least:
            return 1, i, p
    p = 0
    mine, theirs = sums[giver], sums[taker]
    many, others = count[giver] * (count[giver] - 1) // 2, count[taker] * (count[taker] - 1) // 2
    for i in range(many):
        while p < others and theirs[p] < mine[i] - most:
            p += 1
        if p == others:
            break
        if theirs[p] <= mine[i] - least:
            return 2, pairs[giver, i], pairs[taker, p]
    return 0, 0, 0


@kernel
def _carry_out(
    sizes: Ints, held: Ints, count: Ints, giver: int, taker: int, kind: int, out: int, back: int, assignment: Ints
) -> int:
    """Exchange the requests of a trade; return the tokens moved.

    Parameters
    ----------
    sizes, held, count
        (N,) int64; (G, .) requests of the workers in ascending order, changed in place; (G,) how many.
    giver, taker, kind, out, back
        The workers, how many requests each gives, and the ranks of these.
    assignment
        (N,) int64, changed in place.
    """
    moved = 0
    for turn in range(kind):
        i, p = (out, back) if kind == 1 else (out // _BASE, back // _BASE) if turn == 0 else (out % _BASE, back % _BASE)
        a, b = held[giver, i], held[taker, p]
        held[giver, i], held[taker, p] = b, a
        assignment[a], assignment[b] = taker, giver
        moved += sizes[a] - sizes[b]
    for g in (giver, taker):
        own = held[g]
        for i in range(1, count[g]):
            k, p = own[i], i
            while p > 0 and sizes[own[p - 1]] > sizes[k]:
                own[p] = own[p - 1]
                p -= 1
            own[p] = k
    return moved
