"""A tree of placements at one envelope: depth first, each node bounded by its own prices.

A branch takes a class and a worker between which the restricted program is undecided: one more request of the class is
placed on the worker, or none is any more. Workers that fill several slots come first: where those are settled the rest
is nearly a matching, whose relaxation is exact. Of a few such pairs it is the one whose two cases lose most at the
prices of the node: the worker gives up its best profit for the best one with the request, or without any.

Of what the tree does records are written as words. Of a node that is closed: -1 and the row of its prices. Of a branch:
the class, the worker, and 1 where the case of the placement comes first, else 0; the records of both cases follow.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.bounds import ban, clear_path, lift, place, unban, worker_best
from lbopt.kernels.conditions.columns import solve_prices
from lbopt.kernels.conditions.fill import fill
from lbopt.kernels.conditions.state import FORBIDDEN, NONE, Search, Step, book
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.state import Master

#: How a tree ends for now.
DONE, PAUSED, GIVEN_UP = 0, 1, 2

#: Pairs of a class and a worker that are compared at a node.
_LOOKED_AT = 8

#: Every so many nodes a decision is filled.
_FILLED = 8

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
    """Begin a tree that may bound `most` nodes; s.best_price holds the prices of its root."""
    tree = s.tree
    clear_path(step, s.path)
    tree.depth, tree.fresh, tree.left, tree.begun, tree.priced = 0, 1, most, s.known.records, s.known.prices


@kernel
def grow(step: Step, s: Search, m: Master, first: int, M: int, nodes: int) -> int:
    """Go on with the tree at envelope M for so many nodes; return DONE, PAUSED or GIVEN_UP.

    DONE: every decision of an envelope in first..M that is better than the best one was found or ruled out. GIVEN_UP:
    its nodes are used up, or a decision within M has the value needed and another envelope.
    """
    tree, known = s.tree, s.known
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
            total = _inherited(step, s, M, d)
            if total > NONE and total // step.scale >= need:
                total = solve_prices(step, s, m, M, need, _ROUNDS, 0, d > 0)
                if used_up(known):
                    return PAUSED
                if known.nodes % _FILLED == 0 or d == 0:
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
                _write(s, s.pair_class[d])
                _write(s, s.pair_worker[d])
                _write(s, s.pair_first[d])
                s.level_price[d] = s.best_price
                s.level_bound[d] = s.best_bound
                s.cursor[d] = -1
            tree.fresh = 0
            continue
        if d < 0:
            return DONE
        k, w, now = s.pair_class[d], s.pair_worker[d], s.cursor[d]
        if now >= 0:
            _case(step, s, k, w, s.pair_first[d] == now, True)
        s.cursor[d] = now = now + 1
        if now >= 2:
            tree.depth -= 1
            continue
        # The case of the placement comes first where the pair says 1: cases 0 and 1 are then the other way round.
        _case(step, s, k, w, s.pair_first[d] == now, False)
        tree.depth, tree.fresh = d + 1, 1


@kernel
def _inherited(step: Step, s: Search, M: int, d: int) -> int:
    """Return the bound of the node at depth d at the prices of the node above; only one worker can do less there."""
    if d == 0:
        s.price[:] = s.best_price
        return FORBIDDEN
    above = d - 1
    s.price[:] = s.level_price[above]
    s.best_price[:] = s.price
    s.best_bound[:] = s.level_bound[above]
    w = s.pair_worker[above]
    bound, _ = worker_best(step, s, w, M, -1, s.path.left, s.price, NONE)
    if bound == NONE:
        return NONE
    s.best_bound[w] = min(bound, s.best_bound[w])
    total = 0
    for k in range(step.copies.size):
        total += step.copies[k] * s.price[k]
    for u in range(step.slots.size):
        total += s.best_bound[u]
    return total


@kernel
def _case(step: Step, s: Search, k: int, w: int, banned: bool, undo: bool) -> None:
    """Enter one case of a branch, or leave it again."""
    if banned and undo:
        unban(s.path, k, w)
    elif banned:
        ban(s.path, k, w)
    elif undo:
        lift(step, s.path, k, w)
    else:
        place(step, s.path, k, w)


@kernel
def _needed(step: Step, s: Search, M: int) -> int:
    """Return the value from which on a decision of envelope M is better than the best one."""
    return step.workers * M - step.total - s.known.cost + 1


@kernel
def _branch(step: Step, s: Search, m: Master, M: int, d: int, total: int, need: int) -> bool:
    """Choose class, worker and first case of the branch at depth d; return whether there is one."""
    W, K, path, amount = step.slots.size, step.copies.size, s.path, s.amount
    spare = total - need + 1
    amount[:W, :K] = 0.0
    for b in range(m.counts.tight):
        j = m.basic[b]
        if j >= W and m.level[b] > _WHOLE:
            for i in range(step.slots[m.owner[j]]):
                amount[m.owner[j], m.items[j, i]] += m.level[b]
    found, most = False, -1.0
    for open_slots in (2, 1):
        for _ in range(_LOOKED_AT):
            book(s, W * K)
            part, k, w = _WHOLE, -1, -1
            for u in range(W):
                if step.slots[u] - path.placed[u] < open_slots:
                    continue
                for c in range(K):
                    x = amount[u, c]
                    if x > _WHOLE and path.left[c] > 0 and path.banned[u, c] == 0:
                        x -= int(x + _WHOLE)
                        if min(x, 1.0 - x) > part:
                            part, k, w = min(x, 1.0 - x), c, u
            if k < 0:
                break
            share = amount[w, k] - int(amount[w, k])
            amount[w, k] = 0.0
            with_it, without = _losses(step, s, M, k, w)
            score = (min(with_it, spare) + 1.0) * (min(without, spare) + 1.0) / (spare + 1.0)
            if score > most:
                most, found = score, True
                s.pair_class[d], s.pair_worker[d] = k, w
                s.pair_first[d] = 1 if share >= 0.5 or without >= spare else 0
        if found:
            return True
    return _undecided(step, s, d)


@kernel
def _losses(step: Step, s: Search, M: int, k: int, w: int) -> tuple[int, int]:
    """Return what worker w loses at the node's prices if it takes one more of class k, and if it takes none."""
    path = s.path
    path.left[k] -= 1
    profit, _ = worker_best(step, s, w, M, k, path.left, s.best_price, NONE)
    path.left[k] += 1
    with_it = FORBIDDEN if profit == NONE else s.best_bound[w] - profit
    ban(path, k, w)
    profit, _ = worker_best(step, s, w, M, -1, path.left, s.best_price, NONE)
    unban(path, k, w)
    return max(0, with_it), FORBIDDEN if profit == NONE else max(0, s.best_bound[w] - profit)


@kernel
def _undecided(step: Step, s: Search, d: int) -> bool:
    """Branch on the first class that a worker may still take; return whether there is one."""
    path = s.path
    for w in range(step.slots.size):
        if path.placed[w] < step.slots[w]:
            for k in range(step.copies.size):
                if path.left[k] > 0 and path.banned[w, k] == 0 and step.work[w, k] < FORBIDDEN:
                    s.pair_class[d], s.pair_worker[d], s.pair_first[d] = k, w, 1
                    return True
    return False
