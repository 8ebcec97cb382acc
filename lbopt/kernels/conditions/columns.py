"""Prices of one envelope along a path: column generation over patterns, with the master program of the plain search.

Every round adds the best pattern of each worker at the new prices, and a whole decision filled at these prices. What is
placed is taken for granted: columns that contradict the path, or do not fit the envelope, are driven out by their
value, so that one basis serves all nodes and envelopes.

A dive for a decision fixes patterns that the restricted program holds nearly whole, and prices the rest anew. Every
step fixes all such patterns, or the one of the largest share where there is none, offers what is filled around them,
and solves the master program of what is left. It ends where all workers are settled, or where the bound says that
nothing better can follow. Source: diving heuristics of branch and price.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.bounds import clear_path, evaluate, place
from lbopt.kernels.conditions.fill import fill
from lbopt.kernels.conditions.pattern import EXACTLY, ROUGHLY
from lbopt.kernels.conditions.state import NO_BOUND, NONE, Search, Step, book
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.columns import AT_ONCE, reoptimise
from lbopt.kernels.search.master import PRICED, add_column, drop_columns, reset_master
from lbopt.kernels.search.state import Master

#: Pivots after which one restricted program is priced as it is.
_PIVOTS = 2_000

#: Columns for each worker beyond which those that are not basic are forgotten.
_CROWDED = 12


@kernel
def solve_prices(step: Step, s: Search, m: Master, M: int, need: int, rounds: int, filling: int, again: bool) -> int:
    """Lower the bound on scale * value at envelope M along the path until its value is below `need`, or it stays.

    Starts from s.price. Leaves the prices of the best bound in s.best_price, what no profit exceeds at these in
    s.best_bound, and offers the decisions that it fills.
    Returns the bound; NONE where nothing fits.
    """
    W, scale, known, pattern = step.slots.size, step.scale, s.known, s.pattern
    _get_ready(step, s, m)
    _value_columns(step, s, m, M)
    lowest = NO_BOUND
    s.effort.steps = ROUGHLY
    for turn in range(rounds):
        if turn == 0 and again:
            _to_prices(step, s, m)
        _known_profits(step, s, m)
        total = evaluate(step, s, M, s.price)
        s.least[:] = NONE
        known.work += 4 + W
        if total == NONE:
            s.best_price[:] = s.price
            return NONE
        if total < lowest:
            lowest = total
            s.best_price[:] = s.price
            s.best_bound[:] = s.bound
            if lowest // scale < need:
                break
        if used_up(known):
            break
        added = 0
        for w in range(W):
            if pattern[w, 0] >= -1:
                added += _add_pattern(step, s, m, w, s.pattern, s.mode[w], turn > 0)
        if turn > 0 and added == 0:
            if s.effort.steps == EXACTLY or (total - _loose(step, s)) // scale >= need:
                break
            s.effort.steps = EXACTLY  # converged at bounds that are not exact: go on with exact ones
            continue
        if filling > 0 and turn % filling == 0 and fill(step, s, m, M, s.price, False):
            for w in range(W):
                _add_pattern(step, s, m, w, s.leaf, s.leaf_mode[w], False)
        _to_prices(step, s, m)
    s.effort.steps = ROUGHLY
    return lowest


@kernel
def add_decision(step: Step, s: Search, m: Master) -> None:
    """Add the patterns of the best decision as columns; near it the prices settle sooner."""
    _get_ready(step, s, m)
    for w in range(step.slots.size):
        _add_pattern(step, s, m, w, s.answer, s.answer_mode[w], False)


@kernel
def _get_ready(step: Step, s: Search, m: Master) -> None:
    """Begin the master program where it has not been used, and make room for columns where there are too many."""
    W, known = step.slots.size, s.known
    if known.warm == 0:
        reset_master(m, step.copies, W, m.items.shape[1], float(step.penalty))
        known.warm = 1
    elif m.counts.columns > _CROWDED * W + W:
        drop_columns(m)


@kernel
def _to_prices(step: Step, s: Search, m: Master) -> None:
    """Solve the restricted program, and round its prices."""
    W, known, most = step.slots.size, s.known, 2.0 * step.penalty * step.scale
    reoptimise(m, PRICED, _PIVOTS, s.pivoting, known, AT_ONCE)
    for k in range(step.copies.size):
        p = m.place[W + k]
        dual = m.dual[p] * step.scale + 0.5 if p >= 0 else 0.0
        s.price[k] = step.floor[k] + (int(min(dual, most)) if dual > 0.0 else 0)


@kernel
def _known_profits(step: Step, s: Search, m: Master) -> None:
    """Set s.least to the best profits of the columns that fit, at the prices in use."""
    s.least[:] = NONE
    book(s, m.counts.columns)
    for j in range(step.slots.size, m.counts.columns):
        if m.value[j] == m.worth[j]:
            w, profit = m.owner[j], int(m.worth[j]) * step.scale
            for i in range(step.slots[w]):
                k = m.items[j, i]
                profit += step.floor[k] - s.price[k]
            s.least[w] = max(s.least[w], profit)


@kernel
def _loose(step: Step, s: Search) -> int:
    """Return by how much the bounds of the workers are above the profits of their patterns."""
    total = 0
    for w in range(step.slots.size):
        total += s.bound[w] - s.value[w] if s.value[w] > NONE else s.bound[w]
    return total


@kernel
def _add_pattern(step: Step, s: Search, m: Master, w: int, pattern: Ints, mode: int, gaining: bool) -> int:
    """Add a pattern of worker w as a column; return whether it was."""
    q = step.slots[w]
    load, value = -step.mode_cut[mode], step.mode_value[mode]
    gain = 0.0
    for i in range(q):
        k = pattern[w, i]
        load += step.work[w, k]
        value += step.value[w, k] + (step.bonus if step.floor[k] < 0 else 0)
        p = m.place[step.slots.size + k]
        gain -= m.dual[p] if p >= 0 else 0.0
    if gaining:
        gain += value - m.dual[m.place[w]]
        if gain <= 1e-5:
            return 0
    if m.counts.columns >= m.owner.size:
        drop_columns(m)
    return 1 if add_column(m, w, pattern[w], q, load, float(value)) >= 0 else 0


@kernel
def _value_columns(step: Step, s: Search, m: Master, M: int) -> None:
    """Give columns that fit envelope M and the path their worth, and the others a penalty."""
    path, W, penalty = s.path, step.slots.size, -float(step.penalty)
    book(s, m.counts.columns * s.leaf.shape[1])
    for j in range(W, m.counts.columns):
        w = m.owner[j]
        good = m.size[j] <= M - step.load[w]
        if good:
            q, placed = step.slots[w], path.placed[w]
            for i in range(q):
                # As many of the class as are placed here or may still be.
                k, mine, here = m.items[j, i], 0, 0
                for e in range(q):
                    mine += 1 if m.items[j, e] == k else 0
                for e in range(placed):
                    here += 1 if path.taken[w, e] == k else 0
                good = good and mine <= here + (path.left[k] if path.banned[w, k] == 0 else 0)
            for i in range(placed):
                k, mine, here = path.taken[w, i], 0, 0
                for e in range(q):
                    mine += 1 if m.items[j, e] == k else 0
                for e in range(placed):
                    here += 1 if path.taken[w, e] == k else 0
                good = good and mine >= here
        m.value[j] = m.worth[j] if good else penalty


#: Shares that count as whole, and rounds of column generation after each step.
_WHOLE, _DIVING = 0.9, 12


@kernel
def dive(step: Step, s: Search, m: Master, first: int, M: int) -> None:
    """Look for a decision within envelope M that is better than the best one; the master program is that of M."""
    known, path = s.known, s.path
    clear_path(step, path)
    for _ in range(step.slots.size):
        most, chosen = 0.0, -1
        for b in range(m.counts.tight):
            j = m.basic[b]
            if j < m.counts.workers or m.value[j] != m.worth[j] or path.placed[m.owner[j]] > 0:
                continue
            if m.level[b] > _WHOLE:
                _fix(step, s, m, j)
            elif m.level[b] > most:
                most, chosen = m.level[b], j
        if chosen >= 0 and path.placed[m.owner[chosen]] == 0:
            _fix(step, s, m, chosen)
        settled = True
        for w in range(step.slots.size):
            settled = settled and path.placed[w] == step.slots[w]
        need = step.workers * first - step.total - known.cost + 1
        total = solve_prices(step, s, m, M, need, _DIVING, 0, True)
        if total == NONE or total // step.scale < need or used_up(known):
            break
        fill(step, s, m, M, s.best_price, True)
        if settled:
            break
    clear_path(step, path)


@kernel
def _fix(step: Step, s: Search, m: Master, j: int) -> None:
    """Place the requests of column j on its worker, unless some are gone."""
    w, q = m.owner[j], step.slots[m.owner[j]]
    for i in range(q):
        if s.path.left[m.items[j, i]] <= 0:
            for e in range(i):
                s.path.left[m.items[j, e]] += 1
            return
        s.path.left[m.items[j, i]] -= 1
    for i in range(q):
        s.path.left[m.items[j, i]] += 1
    for i in range(q):
        place(step, s.path, m.items[j, i], w)
