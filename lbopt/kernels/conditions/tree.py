"""A tree of placements at one envelope: depth first, each node bounded by its own prices.

A *placement* is one request of a class on a worker, or all that is left of the class waits. At a node whose prices do
not close it, a class is chosen that the restricted program shares out in parts. For each of its ways the node's prices
say what is lost at least: worker w gives up its best profit for the best one with the request; that all wait costs their
prices. Ways that lose more than the node can spare need no node; the others are tried, the least loss first.

Of what the tree does, records are written as words: of a node that is closed -1 and the row of its prices; of a branch
the class, the row, the number of its ways, and the ways (a worker, or `WAITS`), whose records follow in this order.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.bounds import clear_path, evaluate, lift, place, worker_best
from lbopt.kernels.conditions.columns import solve_prices
from lbopt.kernels.conditions.fill import fill
from lbopt.kernels.conditions.state import FORBIDDEN, NONE, WAITS, Search, Step
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.state import Master

#: How a tree ends for now.
DONE, PAUSED, GIVEN_UP = 0, 1, 2

#: Classes of which the ways are counted at a node.
_LOOKED_AT = 5

#: Rounds of column generation at a node.
_ROUNDS = 200

#: Amounts nearer than this to 0 or 1 are whole.
_WHOLE = 1e-6


@kernel
def keep_prices(s: Search) -> int:
    """Write the best prices down and return their row; -1 where there is no room left."""
    known = s.known
    if known.prices >= s.prices.shape[0]:
        known.written = 0
        return -1
    row = known.prices
    s.prices[row] = s.best_price
    known.prices = row + 1
    return row


@kernel
def _write(s: Search, word: int) -> None:
    if s.known.records < s.records.size:
        s.records[s.known.records] = word
        s.known.records += 1
    else:
        s.known.written = 0


@kernel
def plant(step: Step, s: Search, most: int) -> None:
    """Begin a tree that may bound `most` nodes; s.best_price holds the prices of its root.

    Parameters
    ----------
    step, s, most
        The decision, the search, which changes in place, and the nodes.
    """
    tree = s.tree
    clear_path(step, s.path)
    tree.depth, tree.fresh, tree.left, tree.begun, tree.priced = 0, 1, most, s.known.records, s.known.prices


@kernel
def grow(step: Step, s: Search, m: Master, first: int, M: int, nodes: int) -> int:
    """Go on with the tree at envelope M for so many nodes; return DONE, PAUSED or GIVEN_UP.

    DONE: every decision of an envelope in first..M that is better than the best one was found or ruled out. GIVEN_UP:
    its nodes are used up, or a decision within M has the value needed and another envelope.

    Parameters
    ----------
    step, s, m
        The decision, the search and the master program, which change in place.
    first, M, nodes
        Range of envelopes; nodes to bound in this call.
    """
    tree, known, path = s.tree, s.known, s.path
    while True:
        d = tree.depth
        if tree.fresh == 1:
            if tree.left <= 0:
                return GIVEN_UP
            if nodes <= 0 or used_up(known):
                return PAUSED
            nodes -= 1
            tree.left -= 1
            known.nodes += 1
            need = _needed(step, s, first)
            if d == 0:
                s.price[:] = s.best_price
            else:
                s.price[:] = s.level_price[d - 1]
            total = solve_prices(step, s, m, M, need, _ROUNDS)
            if used_up(known):
                return PAUSED
            fill(step, s, m, M, s.best_price, True)
            need = _needed(step, s, first)
            row = keep_prices(s)
            if total == NONE or total // step.scale < need:
                _write(s, -1)
                _write(s, row)
                tree.depth -= 1
            else:
                if d + 1 >= s.cursor.size or not _branch(step, s, m, M, d, total, need * step.scale):
                    return GIVEN_UP
                _write(s, s.size_class[d])
                _write(s, row)
                _write(s, s.num_ways[d])
                for i in range(s.num_ways[d]):
                    _write(s, s.ways[d, i])
                s.level_price[d] = s.best_price
                s.cursor[d] = -1
            tree.fresh = 0
            continue
        if d < 0:
            return DONE
        k, now = s.size_class[d], s.cursor[d]
        if now >= 0:
            lift(step, path, k, s.ways[d, now], s.before[d, 0], s.before[d, 1])
        s.cursor[d] = now + 1
        if s.cursor[d] >= s.num_ways[d]:
            tree.depth -= 1
            continue
        s.before[d, 0], s.before[d, 1] = path.left[k], path.counted[k]
        place(step, path, k, s.ways[d, s.cursor[d]])
        tree.depth, tree.fresh = d + 1, 1


@kernel
def _needed(step: Step, s: Search, M: int) -> int:
    """Return the value from which on a decision of envelope M is better than the best one."""
    return step.workers * M - step.total - s.known.cost + 1


@kernel
def _branch(step: Step, s: Search, m: Master, M: int, d: int, total: int, need: int) -> bool:
    """Choose the class that the node at depth d places, and its ways; return whether there is one.

    Of the classes that the restricted program shares out in parts, it is the one of fewest ways.

    Parameters
    ----------
    step, s, m
        The decision, the search, which changes in place, and the master program.
    M, d
        Envelope, depth.
    total, need
        Bound at s.best_price, and what is needed, both times scale.
    """
    W, K, path, amount, part = step.slots.size, step.copies.size, s.path, s.amount, s.part
    evaluate(step, s, M, s.best_price)
    amount[:W, :K] = 0.0
    for b in range(m.counts.tight):
        j = m.basic[b]
        if j >= W and m.level[b] > _WHOLE:
            for i in range(step.slots[m.owner[j]]):
                amount[m.owner[j], m.items[j, i]] += m.level[b]
    for k in range(K):
        part[k] = 0.0
        for w in range(W):
            x = amount[w, k]
            if path.left[k] > 0 and x > _WHOLE:
                x -= int(x + _WHOLE)
                part[k] += min(x, 1.0 - x) if x > _WHOLE else 0.0
    chosen, fewest = -1, 1 << 60
    for _ in range(_LOOKED_AT):
        k = int(np.argmax(part[:K]))
        if part[k] <= _WHOLE:
            break
        part[k] = 0.0
        count = _list_ways(step, s, M, d, k, total, need)
        if count < fewest:
            fewest, chosen = count, k
            if count <= 1:
                break
    if chosen < 0:  # nothing is split: place what a worker with open slots holds
        most = 0.0
        for w in range(W):
            for k in range(K):
                if path.placed[w] < step.slots[w] and path.left[k] > 0 and amount[w, k] > most:
                    chosen, most = k, amount[w, k]
    if chosen < 0:
        for k in range(K):
            if path.left[k] > 0:
                chosen = k
    if chosen < 0:
        return False
    s.size_class[d] = chosen
    s.num_ways[d] = _list_ways(step, s, M, d, chosen, total, need)
    return True


@kernel
def _list_ways(step: Step, s: Search, M: int, d: int, k: int, total: int, need: int) -> int:
    """List the ways of class k that the prices in s.best_price leave, the least loss first; return how many.

    Parameters
    ----------
    step, s
        The decision, and the search, whose level d changes in place.
    M, d, k
        Envelope, depth, class.
    total, need
        Bound at these prices, and what is needed, both times scale.
    """
    path, price, count = s.path, s.best_price, 0
    ways, losses = s.ways[d], s.losses[d]
    if step.floor[k] >= 0:
        loss = path.left[k] * price[k]
        if total - loss >= need:
            ways[0], losses[0], count = WAITS, loss, 1
    path.left[k] -= 1
    for w in range(step.slots.size):
        if path.placed[w] == step.slots[w] or step.work[w, k] >= FORBIDDEN:
            continue
        profit, _ = worker_best(step, s, w, M, k, path.left, price, s.leaf, s.leaf_mode)
        if profit == NONE or total - (s.bound[w] - profit) < need:
            continue
        loss, i = s.bound[w] - profit, count
        while i > 0 and losses[i - 1] > loss:
            ways[i], losses[i] = ways[i - 1], losses[i - 1]
            i -= 1
        ways[i], losses[i] = w, loss
        count += 1
    path.left[k] += 1
    return count
