"""The search over the envelope M: open ranges of M, cheapest bound first, each closed by prices or by descent.

A solution with largest load M costs G M - (loads before) - T, so a bound on the tokens T that fit under M bounds the
cost, and a bound at b serves a whole range a..b: cost >= G a - (loads before) - T(b). The search keeps a list of open
ranges and always takes the one with the least bound:

1. it is evaluated at the newest prices;
2. a range of several M is halved;
3. a single M gets a price of its own: one threshold for all classes, a first assignment, a short descent;
4. then the master program, whose prices are the best there are;
5. then descents with growing limits: each finds an assignment as cheap as the bound, or shows that there is none.

It ends when no open range is below the best assignment. All bounds are exact integers.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.column_generation import generate_columns
from lbopt.kernels.search.descent import descend
from lbopt.kernels.search.dive import dive
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.master import Master, reset_master
from lbopt.kernels.search.near_optimal import list_all
from lbopt.kernels.search.prices import EXACT, QUICK, evaluate, threshold_prices
from lbopt.kernels.search.rematch import rematch

_NONE = -(1 << 62)

PROVED, OPEN, STUCK = 1, 0, -1

# columns of `node`: bound, first M, last M, stage, prices tried
LB, FIRST, LAST, STAGE, TRIED = 0, 1, 2, 3, 4
SPLIT, THRESHOLD, MASTER, DESCEND = 0, 1, 2, 3


class Step(NamedTuple):
    """A decision at H = 0 in the terms of the search."""

    v: Ints  # (K,) sizes of the classes, ascending
    n: Ints  # (K,) requests of each
    load: Ints  # (W,) loads of the open workers, ascending in slots
    slots: Ints  # (W,)
    sums: Ints  # (Q + 1,) totals of the smallest requests
    facts: Ints  # workers, total load, heaviest load, scale, tokens of the U largest requests


class Search(NamedTuple):
    """The state of the search; changes in place, and can be taken up again."""

    node: Ints  # (N, 5) open ranges
    bank: Ints  # (P, K) prices found so far
    bank_at: Ints  # (P,) the envelope they were found at
    answer: Ints  # (W, Q) classes of the best assignment
    known: Ints  # best cost, nodes, prices, work done, proved bound
    price: Ints
    first_answer: Ints  # (W, Q) scratch
    best_price: Ints
    short: Ints  # (8, K + pad)
    table: Ints  # (2, TABLE + 1)
    value: Ints
    bound: Ints
    pattern: Ints  # (W, 3Q + 2)
    rank: Ints
    work: Ints  # (6, W + 1)
    classes: Ints  # (6, K + pad)
    first: Ints
    last: Ints
    items: Ints  # (R, 3)
    loss: Ints
    viable: Ints
    undecided: Ints
    master: Master


COST, NODES, PRICES, WORK, BOUND = 0, 1, 2, 3, 4


@kernel
def offer(step: Step, search: Search, pattern: Ints, tokens: int) -> None:
    """Keep an assignment if it is the best so far; its cost is taken at the load it really reaches."""
    load, slots, v, facts = step.load, step.slots, step.v, step.facts
    M = facts[2]
    for w in range(load.size):
        after = load[w]
        for q in range(slots[w]):
            after += v[pattern[w, q]]
        M = max(M, after)
    cost = facts[0] * M - facts[1] - tokens
    if cost < search.known[COST]:
        search.known[COST] = cost
        for w in range(load.size):
            for q in range(slots[w]):
                search.answer[w, q] = pattern[w, q]


@kernel
def push(search: Search, lb: int, first: int, last: int, stage: int, tried: int) -> bool:
    """Add an open range; False where there is no room for it."""
    count = search.known[NODES]
    if count >= search.node.shape[0]:
        return False
    node = search.node[count]
    node[LB], node[FIRST], node[LAST], node[STAGE], node[TRIED] = lb, first, last, stage, tried
    search.known[NODES] = count + 1
    return True


@kernel
def keep_prices(search: Search, price: Ints, M: int) -> None:
    """Remember prices; the oldest but the first make room."""
    count = search.known[PRICES]
    P = search.bank.shape[0]
    at = count if count < P else 1 + (count - 1) % (P - 1)
    for k in range(price.size):
        search.bank[at, k] = price[k]
    search.bank_at[at] = M
    search.known[PRICES] = count + 1


@kernel
def newest(search: Search, count: int) -> int:
    """Return where the count-th prices are kept."""
    P = search.bank.shape[0]
    return count if count < P else 1 + (count - 1) % (P - 1)


@kernel
def _recall(search: Search, at: int) -> None:
    for k in range(search.price.size):
        search.price[k] = search.bank[at, k]


@kernel
def begin(step: Step, search: Search) -> None:
    """Open ranges from the least possible envelope to the last one that could beat the best assignment."""
    load, slots, sums, facts = step.load, step.slots, step.sums, step.facts
    G, total, M, most = facts[0], facts[1], facts[2], facts[4]
    for w in range(load.size):
        M = max(M, load[w] + sums[slots[w]])
    end = (search.known[COST] - 1 + total + most) // G
    width = 1
    while M <= end:
        last = min(end, M + width - 1)
        push(search, max(0, G * M - total - most), M, last, SPLIT, 0)
        M = last + 1
        width *= 2


@kernel
def advance(step: Step, search: Search, budget: int) -> int:
    """Search until everything is closed or `budget` is spent (units of about 1 microsecond).

    Returns PROVED, OPEN (more budget may help) or STUCK (no method is left for the cheapest range).
    """
    v, n, load, slots, sums, facts = step.v, step.n, step.load, step.slots, step.sums, step.facts
    node, known = search.node, search.known
    price, best_price, short, table = search.price, search.best_price, search.short, search.table
    value, bound, pattern = search.value, search.bound, search.pattern
    G, total, scale = facts[0], facts[1], facts[3]
    W, K = load.size, v.size
    stop = known[WORK] + budget
    while True:
        # the cheapest open range; where two are as cheap, the one that has come furthest
        i = -1
        for j in range(known[NODES]):
            if i < 0 or node[j, LB] < node[i, LB] or (node[j, LB] == node[i, LB] and node[j, STAGE] > node[i, STAGE]):
                i = j
        if i < 0 or node[i, LB] >= known[COST]:
            known[BOUND] = known[COST]
            return PROVED
        known[BOUND] = node[i, LB]
        if known[WORK] >= stop:
            return OPEN
        a, b, stage = node[i, FIRST], node[i, LAST], node[i, STAGE]
        if node[i, TRIED] < known[PRICES]:
            # newest prices first: they were found nearest to where the search is now
            _recall(search, newest(search, known[PRICES] - 1))
            node[i, TRIED] = known[PRICES]
            tokens = evaluate(b, scale, QUICK, v, n, price, load, slots, sums, short, table, value, bound, pattern)
            known[WORK] += 5 + W // 3
            if tokens == _NONE:
                node[i, LB] = 1 << 62
            else:
                node[i, LB] = max(node[i, LB], G * a - total - tokens // scale)
        elif a < b:
            middle = (a + b) // 2
            lb, tried = node[i, LB], node[i, TRIED]
            node[i, LAST], node[i, TRIED] = middle, 0
            if not push(search, lb, middle + 1, b, SPLIT, tried):
                return STUCK
        elif stage == SPLIT and known[PRICES] > 0:
            node[i, STAGE] = THRESHOLD  # prices from another envelope are a better start than a threshold
        elif stage == SPLIT:
            node[i, STAGE] = THRESHOLD
            tokens = threshold_prices(
                a, scale, v, n, price, load, slots, sums, short, table, value, bound, pattern, best_price
            )
            known[WORK] += 50 + 5 * W
            if tokens == _NONE:
                node[i, LB] = 1 << 62
                continue
            node[i, LB] = max(node[i, LB], G * a - total - tokens // scale)
            keep_prices(search, best_price, a)
            node[i, TRIED] = known[PRICES]
            _recall(search, newest(search, known[PRICES] - 1))
            _fill(step, search, a)
            if node[i, LB] < known[COST]:
                _descend(step, search, i, 0, 200, W + 10, 1)
        elif stage == THRESHOLD:
            node[i, STAGE] = MASTER
            reset_master(search.master, n, W, 2.0 * a)
            _recall(search, newest(search, known[PRICES] - 1))
            enough = G * a - total - known[COST]
            tokens, rounds, ending, top = generate_columns(
                search.master, a, scale, enough, 300, v, n, price, load, slots, search.rank, sums, short,
                table, value, bound, pattern, best_price, search.undecided, search.items, search.first_answer,
            )
            known[WORK] += 10 + search.master.count[2] * (W + search.master.count[1]) ** 2 // 1000
            if top >= 0:
                _improve(step, search, search.first_answer, a, top, 100)
            node[i, LB] = max(node[i, LB], G * a - total - tokens // scale)
            keep_prices(search, best_price, a)
            node[i, TRIED] = known[PRICES]
            if ending == 0 and node[i, LB] < known[COST]:
                target = G * a - total - node[i, LB]
                _recall(search, newest(search, known[PRICES] - 1))
                top, pivots = dive(
                    search.master, a, scale, target, 200, 200, v, n, load, slots, search.rank, price, best_price, short, table,
                    value, bound, pattern, search.work, search.classes, search.first, search.last, search.items,
                    search.loss, search.viable, search.undecided, search.first_answer,
                )
                known[WORK] += pivots * (W + search.master.count[1]) ** 2 // 1000
                if top >= 0:
                    _improve(step, search, search.first_answer, a, top, 100)
        else:
            level = stage - MASTER
            if level > 12:
                return STUCK
            most = min(200 << (2 * level), 20000)
            extras = 6 if level == 0 else 1
            if not _descend(step, search, i, 0, most, 300 << (3 * level), extras):
                node[i, STAGE] = stage + 1


@kernel
def _fill(step: Step, search: Search, M: int) -> None:
    """Offer the assignment that greedy filling at the present prices gives."""
    v, n, load, slots = step.v, step.n, step.load, step.slots
    short, price = search.short, search.price
    p, best, now, some = short[0], short[1], short[2], short[3]
    scale = step.facts[3]
    lowest = 0
    for k in range(v.size):
        p[k] = scale * v[k] - price[k]
        lowest = min(lowest, price[k])
    tokens = fill(
        M, scale, lowest, v, p, n, load, slots, search.rank, search.undecided, search.items, search.pattern, best, some, now
    )
    if tokens >= 0:
        _improve(step, search, search.pattern, M, tokens, 40)


@kernel
def _improve(step: Step, search: Search, pattern: Ints, M: int, tokens: int, rounds: int) -> int:
    """Offer an assignment and what `rematch` makes of it."""
    G, total, scale = step.facts[0], step.facts[1], step.facts[3]
    offer(step, search, pattern, tokens)
    target = G * M - total - search.known[BOUND]
    if tokens < target:
        tokens = rematch(
            M, scale, target, rounds, 12345, step.v, step.n, step.load, step.slots, pattern, search.work, search.classes
        )
        offer(step, search, pattern, tokens)
        search.known[WORK] += rounds * (5 + step.load.size // 5)
    return tokens


@kernel
def _descend(step: Step, search: Search, i: int, which: int, most: int, nodes: int, tries: int) -> bool:
    """Descend at the envelope of range i with its newest prices; True where that settled its present bound.

    First for an assignment as cheap as the bound, then (`tries` > 1) for slightly worse ones.
    """
    v, n, load, slots, sums, facts = step.v, step.n, step.load, step.slots, step.sums, step.facts
    node, known, price = search.node, search.known, search.price
    G, total, scale = facts[0], facts[1], facts[3]
    M, lb = node[i, FIRST], node[i, LB]
    d = 1 << 62
    for j in range(min(known[PRICES], search.bank.shape[0])):
        if search.bank_at[j] == M:
            tokens = evaluate(
                M, scale, EXACT, v, n, search.bank[j], load, slots, sums, search.short, search.table, search.value, search.bound, search.pattern
            )
            if tokens < d:
                d, which = tokens, j
    _recall(search, which)
    d = evaluate(M, scale, EXACT, v, n, price, load, slots, sums, search.short, search.table, search.value, search.bound, search.pattern)
    extra = 0
    for attempt in range(tries):
        target = G * M - total - lb - extra
        if attempt > 0 and lb + extra >= known[COST]:
            return False
        budget = d - scale * target
        rows = list_all(
            M, scale, budget, most, v, n, price, load, slots, search.bound, search.short[0], search.short[1],
            search.first, search.last, search.items, search.loss,
        )
        state, top, left = descend(
            M, scale, budget, target, nodes, v, n, price, load, slots, search.rank, search.first, search.last,
            search.items, search.loss, search.viable, search.work, search.classes, search.pattern, search.first_answer,
        )
        known[WORK] += 10 + (nodes - left) * (1 + rows // 500)
        if top >= 0:
            _improve(step, search, search.first_answer, M, top, 100)
            if known[COST] <= lb:
                return True
        if state == 0:
            node[i, LB] = lb + extra + 1
            return True
        if state == 1:
            return attempt == 0
        extra = 2 * extra + 1
    return False
