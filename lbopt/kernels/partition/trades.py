"""Trades of one or two requests for as many: excess wanders from worker to worker until one of them can take it.

Swaps of single requests (`swaps`) end where no pair of workers has the difference that is needed. With seven requests a
worker, two workers have 49 differences of single requests and 441 of pairs, so that among some hundred partners nearly
every transfer of a few tokens is to be had exactly. A worker above the target hands its excess over to a worker
below it, if that lessens the sum of all excesses, else to one at the target, exactly: nothing is lost, and other
partners come within reach. What a worker lacks wanders likewise. The sum of all excesses never grows.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.draw import draw
from lbopt.kernels.stable_order import stable_order

#: Requests of a worker up to which its pairs are listed.
MOST_HELD = 24

#: A pair of ranks is one number: the first one times this, plus the second one.
_BASE = 64


@by_reference
class Trading(NamedTuple):
    """What each worker holds."""

    sizes: Ints  # (N,)
    held: Ints  # (G, Q) requests of the workers in ascending order
    many: Ints  # (G,) how many
    sums: Ints  # (G, .) sums of all pairs of a worker's requests in ascending order
    pairs: Ints  # (G, .) and the ranks of each
    assignment: Ints  # (N,)
    below: Ints  # (G,) the workers below the target
    place: Ints  # (G,) where each stands there, -1 for the others


@kernel
def trade_down(
    sizes: Ints, target: int, work_limit: int, load: Ints, assignment: Ints, dice: Ints, deadline: int
) -> int:
    """Trade until every load is at most `target`, or the work is used up; return the work done."""
    G = load.size
    count = np.zeros(G, np.int64)
    for i in range(sizes.size):
        count[assignment[i]] += 1
    Q = count.max()
    held = np.zeros((G, Q), np.int64)
    count[:] = 0
    ascending = stable_order(sizes)
    for r in range(sizes.size):
        g = assignment[ascending[r]]
        held[g, count[g]] = ascending[r]
        count[g] += 1
    most = Q * (Q - 1) // 2
    sums, pairs = np.zeros((G, most), np.int64), np.zeros((G, most), np.int64)
    below = np.zeros(G, np.int64)
    t, lacking = Trading(sizes, held, count, sums, pairs, assignment, below, np.full(G, -1)), 0
    for g in range(G):
        lacking = _note(t, g, load[g] < target, lacking)
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
        for turn in range(lacking):
            w = below[first + turn - lacking if first + turn >= lacking else first + turn]
            most_moved = max(target - load[w], excess + target - load[w] - 1)
            work += count[heavy] ** 2 + count[w] ** 2
            kind, out, back = _transfer(t, heavy, w, excess, most_moved)
            if kind > 0:
                partner = w
                break
        if partner < 0:
            wanders = lacking > 0 and draw(dice, 2) == 0
            if wanders:  # what some worker lacks wanders
                giver = -1
                partner = below[draw(dice, lacking)]
            first = draw(dice, G)
            for turn in range(G):
                w = first + turn - G if first + turn >= G else first + turn
                if load[w] > target or w == partner or count[w] == 0:
                    continue
                work += count[w] ** 2 + count[partner if wanders else heavy] ** 2
                if wanders:
                    missing = target - load[partner]
                    kind, out, back = _transfer(t, w, partner, missing, missing)
                    if kind > 0:
                        giver = w
                        break
                else:
                    kind, out, back = _transfer(t, heavy, w, excess, excess)
                    if kind > 0:
                        partner = w
                        break
        if kind == 0:
            blocked += 1
            heavy = heavy + 1 if heavy + 1 < G else 0
            continue
        blocked = 0
        work += 4 * (count[giver] ** 2 + count[partner] ** 2)
        moved = _carry_out(t, giver, partner, kind, out, back)
        load[giver] -= moved
        load[partner] += moved
        for g in (giver, partner):
            lacking = _note(t, g, load[g] < target, lacking)
    return work


@kernel
def _note(t: Trading, g: int, lacks: bool, lacking: int) -> int:
    """Note what worker g holds and whether it is below the target; return how many are."""
    _list_pairs(t, g)
    if lacks and t.place[g] < 0 and t.many[g] > 0:
        t.below[lacking], t.place[g] = g, lacking
        return lacking + 1
    if not lacks and t.place[g] >= 0:
        last = t.below[lacking - 1]
        t.below[t.place[g]], t.place[last] = last, t.place[g]
        t.place[g] = -1
        return lacking - 1
    return lacking


@kernel
def _list_pairs(t: Trading, g: int) -> None:
    """Write the sums of all pairs of a worker's requests in ascending order, and the ranks of each pair."""
    n, own, sums, pairs = 0, t.held[g], t.sums[g], t.pairs[g]
    for i in range(t.many[g]):
        for j in range(i + 1, t.many[g]):
            both, p = t.sizes[own[i]] + t.sizes[own[j]], n
            while p > 0 and sums[p - 1] > both:
                sums[p], pairs[p] = sums[p - 1], pairs[p - 1]
                p -= 1
            sums[p], pairs[p] = both, i * _BASE + j
            n += 1


@kernel
def _transfer(t: Trading, giver: int, taker: int, least: int, most: int) -> tuple[int, int, int]:
    """Return a trade that moves least..most tokens: how many requests each gives (0: none), and the ranks of these."""
    sizes, count, p, own, other = t.sizes, t.many, 0, t.held[giver], t.held[taker]
    for i in range(count[giver]):
        size = sizes[own[i]]
        while p < count[taker] and sizes[other[p]] < size - most:
            p += 1
        if p == count[taker]:
            break
        if sizes[other[p]] <= size - least:
            return 1, i, p
    p = 0
    mine, theirs = t.sums[giver], t.sums[taker]
    many, others = count[giver] * (count[giver] - 1) // 2, count[taker] * (count[taker] - 1) // 2
    for i in range(many):
        while p < others and theirs[p] < mine[i] - most:
            p += 1
        if p == others:
            break
        if theirs[p] <= mine[i] - least:
            return 2, t.pairs[giver, i], t.pairs[taker, p]
    return 0, 0, 0


@kernel
def _carry_out(t: Trading, giver: int, taker: int, kind: int, out: int, back: int) -> int:
    """Exchange the requests of a trade; return the tokens moved."""
    moved = 0
    for turn in range(kind):
        i, p = (out, back) if kind == 1 else (out // _BASE, back // _BASE) if turn == 0 else (out % _BASE, back % _BASE)
        a, b = t.held[giver, i], t.held[taker, p]
        t.held[giver, i], t.held[taker, p] = b, a
        t.assignment[a], t.assignment[b] = taker, giver
        moved += t.sizes[a] - t.sizes[b]
    for g in (giver, taker):
        own = t.held[g]
        for i in range(1, t.many[g]):
            k, p = own[i], i
            while p > 0 and t.sizes[own[p - 1]] > t.sizes[k]:
                own[p] = own[p - 1]
                p -= 1
            own[p] = k
    return moved
