"""The bound of one node of a tree of placements: the master program with what is placed taken for granted."""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.column_generation import AT_ONCE, NO_BOUND, reoptimise
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.keeping import improve
from lbopt.kernels.search.master import PRICED, add_column, best_column, drop_columns
from lbopt.kernels.search.placed import value_columns, whole_pattern
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, NONE, QUICK, Master, Search, Step, Tree, part

#: How the bounding of a node ends.
DONE, UNFINISHED, SPOILT = 0, 1, 2

#: Pivots after which one restricted program is priced as it is.
ONCE = 400


@kernel
def what_is_left(step: Step, tree: Tree) -> Step:
    """Return the decision that the path of the tree leaves."""
    size, K, Q = tree.state.workers, step.v.size, step.sums.size
    left, sums, rank = tree.left[:K], tree.sums[:Q], tree.rank[:size]
    return part(step, left, tree.load[:size], tree.slots[:size], rank, sums)


@kernel
def bound_node(
    step: Step, search: Search, m: Master, tree: Tree, M: int, target: int, anew: bool, most: int
) -> tuple[int, int, int]:
    """Bound the tokens that fit under envelope M after the placements of the tree's path, once `place` was called.

    Ends as soon as the bound is below `target`. Leaves the prices of the best bound in search.best_price, and offers
    what it fills on the way. With `anew`, the master was reset, and search.price holds prices to begin with.

    Parameters
    ----------
    step, search, m, tree
        The decision; the state of the search, the master program and the tree, which change in place.
    M, target
        Envelope; bound below which the node is closed, tokens.
    anew, most
        Whether the master was reset; work after which to stop, about microseconds.

    Returns
    -------
    scaled, state, work
        The bound times scale (NONE where nothing fits); DONE where it cannot fall any more, or need not, UNFINISHED
        where it took more than `most` microseconds and can be called again, SPOILT where rounding has spoilt the
        master; about how many microseconds were spent.
    """
    v, floor, slots, scale = step.v, step.floor, step.slots, step.scale
    W, K = slots.size, v.size
    rest = what_is_left(step, tree)
    bonus = 0
    for k in range(K):
        bonus = max(bonus, -floor[k] // scale)
    priced = max(PRICED, 1e-12 * (M + bonus) * (W + 1))
    if m.counts.columns > 10 * W:
        drop_columns(m)
    value_columns(m, step, tree, M, 2.0 * M + 1.0)
    row = np.zeros(m.items.shape[1], dtype=np.int64)
    for w in range(W):
        if tree.placed[w] == slots[w] and tree.number[w] == 0:
            _add(m, step, tree, w, row, 0, bonus, row.copy())
    fixed = scale * tree.state.tokens
    lowest, best, work = NO_BOUND, -1, 0
    effort, turn = QUICK, 0
    while True:
        before = m.counts.pivots
        if turn > 0 or not anew:
            reoptimise(m, W, K, priced, ONCE, search.pricing.pivoting, search.known, False, AT_ONCE)
            pivots = m.counts.pivots - before
            work += pivots * (W + m.counts.tight) ** 2 // 3000
            if turn > 0 and pivots == 0 and not used_up(search.known):
                if not anew and best_column(m, W, priced)[0] >= 0:
                    return lowest, SPOILT, work
                loose = False
                for r in range(rest.slots.size):
                    loose = loose or search.value[r] < search.bound[r]
                if effort == EXACT or not loose:
                    break
                effort = EXACT  # converged at bounds that are not exact: look once at exact ones
            elif effort == EXACT:
                break
            for k in range(K):
                q = m.place[W + k]
                search.price[k] = floor[k] + (max(0, int(m.dual[q] * scale + 0.5)) if q >= 0 else 0)
        total = evaluate(rest, search, M, effort)
        work += 20 + W
        if total == NONE:
            return NONE, DONE, work
        if total + fixed < lowest:
            lowest = total + fixed
            for k in range(K):
                search.best_price[k] = search.price[k]
            if lowest // scale < target:
                break
        if m.counts.columns + 2 * W > m.owner.size:
            drop_columns(m)
        _add_all(m, step, tree, search.pattern, bonus, row)
        tokens = fill(rest, search, M, search.leaf)
        if tokens >= 0:
            _add_all(m, step, tree, search.leaf, bonus, row)
            if tokens > best:
                best = tokens
                compose(step, tree, search.leaf, search.spare)
        turn += 1
        if work > most or used_up(search.known):
            break
    if best >= 0:
        tree.state.found = max(tree.state.found, best + tree.state.tokens)
        improve(step, search, search.spare, M, best + tree.state.tokens, 20)
    done = lowest // scale < target or (work <= most and not used_up(search.known))
    return lowest, DONE if done else UNFINISHED, work


@kernel
def _add(m: Master, step: Step, tree: Tree, w: int, rest: Ints, length: int, bonus: int, row: Ints) -> None:
    """Add what is placed on worker w and rest[:length] as a column.

    Parameters
    ----------
    m
        Master program; changes in place.
    step, tree
        The decision; the tree, with the path that `place` set.
    w, rest, length
        Worker; int64 (length,) at least: classes that it takes besides.
    bonus, row
        Tokens that a forced request is worth beyond its size; int64 (Q,), scratch.
    """
    v, floor = step.v, step.floor
    c = whole_pattern(tree, w, rest, length, row)
    size, worth = 0, 0
    for q in range(c):
        size += v[row[q]]
        worth += v[row[q]] + (bonus if floor[row[q]] < 0 else 0)
    add_column(m, w, row, c, size, float(worth))


@kernel
def _add_all(m: Master, step: Step, tree: Tree, pattern: Ints, bonus: int, row: Ints) -> None:
    """Add pattern[r, :slots of r] of every worker that is left, with what is placed on it.

    Parameters
    ----------
    m
        Master program; changes in place.
    step, tree
        The decision; the tree, with the path that `place` set.
    pattern
        int64 (W, Q) at least: classes of worker r of those left; rows that begin with -1 are passed over.
    bonus, row
        Tokens that a forced request is worth beyond its size; int64 (Q,), scratch.
    """
    for r in range(tree.state.workers):
        if pattern[r, 0] >= 0:
            _add(m, step, tree, tree.who[r], pattern[r], tree.slots[r], bonus, row)


@kernel
def compose(step: Step, tree: Tree, pattern: Ints, out: Ints) -> None:
    """Write the assignment of all workers to out[w, :slots[w]], from that of those that are left.

    Parameters
    ----------
    step, tree
        The decision; the tree, with the path that `place` set.
    pattern, out
        int64 (W, Q) at least: classes of worker r of those left; classes of worker w, written.
    """
    for w in range(step.slots.size):
        if tree.placed[w] == step.slots[w]:
            whole_pattern(tree, w, pattern[0], 0, out[w])
    for r in range(tree.state.workers):
        whole_pattern(tree, tree.who[r], pattern[r], tree.slots[r], out[tree.who[r]])
