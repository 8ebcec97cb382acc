"""Solve the master program at one envelope along a path: restricted program, prices, patterns, until nothing is gained.

Every round adds the best pattern of each worker at the new prices and one whole assignment filled at these prices: the
first say where the bound is, the second keeps the restricted program supplied with patterns that go together. What the
path has placed is taken for granted.

Of a large fleet one restricted program takes seconds. So the work is booked pivot by pivot, and where a slice of it is
used up everything stays as it is, to be taken up again: how the work is sliced changes nothing of what is found.

A dive keeps the patterns that the master takes whole, solves it again along them, and so on until all are settled. The
master's optimum is a mixture of patterns, but most workers have one pattern at level one. Those are placed on the path;
the same master then prices what is left. Where nothing is whole, the pattern of the highest level is kept. A dive can
be taken up again: everything it needs is in arrays.
"""

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.master import (
    PRICED,
    best_column,
    best_slack,
    drop_columns,
    enter_column,
    enter_slack,
    refresh_duals,
)
from lbopt.kernels.search.path import add_whole, compose, leave, put, value_columns, what_is_left
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import (
    CONVERGED,
    CUT_OFF,
    DIVE,
    EXACT,
    LOW,
    NONE,
    QUICK,
    SETTLE,
    SPOILT,
    Master,
    Path,
    Search,
    Step,
)

#: Pivots after which one restricted program is left as it is, and rounds of a column generation.
PIVOTS, ROUNDS = 5_000, 300

#: The bound of a column generation that has not evaluated any prices yet.
NO_BOUND = 1 << 62

#: Work of an evaluation, besides a third of the workers: about microseconds.
EVALUATION = 5

#: Pivots after which rounding is taken out of the duals.
REFRESH = 50

#: Work that is never used up: the restricted program is solved in one go.
AT_ONCE = 1 << 62

#: Entries of the inverse, and of columns looked at, that pivots go through in a microsecond.
_ENTRIES = 4000


@kernel
def reoptimise(m: Master, priced: float, pivots: int, state: Record, known: Record, stop: int) -> bool:
    """Pivot until no known column and no slack gains more than `priced`, at most `pivots` times.

    Returns whether it ended; False where the work reached `stop` before: the next call goes on. Where the deadline
    passes, it ends as it is. Of `state` it uses turns, pivots so far, and entries, looked at and not booked as work
    yet.
    """
    while state.turns < pivots and not used_up(known):
        if known.work >= stop:
            return False
        if state.turns % REFRESH == 0:
            refresh_duals(m)
        before = m.counts.entries
        position, gain = best_slack(m, priced)
        column, gain = best_column(m, gain)
        if column >= 0:
            if not enter_column(m, column, gain):
                break
        elif position < 0 or not enter_slack(m, position):
            break
        state.turns += 1
        state.entries += m.counts.entries - before + m.counts.most_slots * (m.counts.columns + m.counts.tight)
        known.work += state.entries // _ENTRIES
        state.entries %= _ENTRIES
    state.turns = 0
    refresh_duals(m)
    return True


@kernel
def bonus_of(step: Step) -> int:
    """Return what a request that must be admitted is worth beyond its size, tokens."""
    return -min(0, step.floor.min()) // step.scale


@kernel
def begin_columns(search: Search, cold: bool) -> None:
    """Let a column generation begin: at search.price, or, unless `cold`, at the prices of the master as it is."""
    state = search.pricing
    state.rounds, state.lowest, state.top, state.effort = 0, NO_BOUND, -1, QUICK
    state.pivoting, state.before, state.ended = 0 if cold else 1, -1, CUT_OFF
    state.turns = state.entries = 0


@kernel
def generate_columns(step: Step, search: Search, m: Master, M: int, enough: int, stop: int) -> bool:
    """Lower the bound on the admitted tokens at envelope M along search.path until it is at most `enough`, or stays.

    After `begin_columns`, with the columns of `m` valued for M and the path. Leaves the prices of the best bound in
    search.best_price, the best assignment that was filled in search.spare, and in search.pricing the bound (`lowest`),
    why it ended (`ended`), and the tokens of that assignment (`top`). Returns whether it ended; where the work reached
    `stop` before, the next call goes on. Where the deadline passes, it ends with what it has.
    """
    K, scale, path, state, known = step.v.size, step.scale, search.path, search.pricing, search.known
    rest, bonus = what_is_left(step, path), bonus_of(step)
    # Duals are sums of values of this size, so differences below are noise.
    priced = max(PRICED, 1e-12 * (M + bonus) * (step.slots.size + 1))
    while state.rounds < ROUNDS:
        if state.pivoting == 0:
            if known.work >= stop:
                return False
            if used_up(known):
                return True
            if _look(step, rest, search, M, enough):
                return True
            _supply(step, rest, search, m, M, bonus)
            state.before, state.pivoting = m.counts.pivots, 1
        if not reoptimise(m, priced, PIVOTS, state, known, stop):
            return False
        state.pivoting = 0
        state.rounds += 1
        if used_up(known):
            return True
        if m.counts.pivots == state.before:
            loose = False
            for r in range(rest.slots.size):
                loose = loose or search.value[r] < search.bound[r]
            if best_column(m, priced)[0] >= 0:
                state.ended = SPOILT
            elif state.effort == EXACT or not loose:
                state.ended = CONVERGED
            else:
                state.effort = EXACT  # converged at bounds that are not exact: go on with exact ones
                continue
            return True
        for k in range(K):
            q = m.place[m.counts.workers + k]
            search.price[k] = step.floor[k] + (max(0, int(m.dual[q] * scale + 0.5)) if q >= 0 else 0)
    return True


@kernel
def _look(step: Step, rest: Step, search: Search, M: int, enough: int) -> bool:
    """Evaluate search.price, and keep it where its bound is the best one; return whether that is low enough."""
    state, path = search.pricing, search.path
    total = evaluate(rest, search, M, state.effort)
    search.known.work += EVALUATION + rest.slots.size // 3
    if total != NONE:
        total += step.scale * path.state.tokens
    if total >= state.lowest:
        return used_up(search.known)
    state.lowest = total
    search.best_price[: step.v.size] = search.price[: step.v.size]
    if total == NONE or total // step.scale <= enough:
        state.ended = LOW
        return True
    return used_up(search.known)


@kernel
def _supply(step: Step, rest: Step, search: Search, m: Master, M: int, bonus: int) -> None:
    """Add the best patterns, and an assignment filled at these prices, as columns; keep the best assignment."""
    state, path = search.pricing, search.path
    if m.counts.columns + 2 * step.slots.size > m.owner.size:
        drop_columns(m)
    _add_all(m, step, path, search.pattern, bonus)
    tokens = fill(rest, search, M, search.leaf)
    if tokens >= 0:
        _add_all(m, step, path, search.leaf, bonus)
        if tokens + path.state.tokens > state.top:
            state.top = tokens + path.state.tokens
            compose(step, path, search.leaf, search.spare)


@kernel
def _add_all(m: Master, step: Step, path: Path, pattern: Ints, bonus: int) -> None:
    """Add pattern[r, :slots of r] of every worker that is left, with what is placed on it."""
    for r in range(path.state.workers):
        if pattern[r, 0] >= 0:
            add_whole(m, step, path, path.who[r], pattern[r], path.slots[r], bonus)


#: Levels from which a pattern counts as taken whole, and below which an artificial one counts as not taken.
WHOLE, NOTHING = 0.999, 1e-6

#: What a dive answers that has to be called again.
UNFINISHED = -2


@kernel
def dive(step: Step, search: Search, m: Master, M: int, target: int, least: int, stop: int) -> int:
    """Complete the master's present optimum to an assignment at envelope M, in search.spare.

    Begins where search.pricing.phase is SETTLE, with the path and the columns of the optimum. It ends at `target`
    tokens; less than `least` are not worth the dive. Returns the tokens admitted, -1 where the dive ended at a worker
    that cannot be served, below `least` or beyond the deadline, UNFINISHED where the work reached `stop` before: the
    next call goes on.
    """
    path, found = search.path, search.pricing
    while True:
        if found.phase == SETTLE:
            if not _settle(step, path, m):
                return -1
            leave(step, path)
            if path.state.workers == 0:
                compose(step, path, search.leaf, search.spare)
                return path.state.tokens
            value_columns(m, step, path, M, bonus_of(step))
            begin_columns(search, False)
            found.phase = DIVE
        if not generate_columns(step, search, m, M, least - 1, stop):
            return UNFINISHED
        found.phase = SETTLE
        if used_up(search.known) or found.lowest == NONE or found.lowest // step.scale < least:
            return -1
        if found.top >= max(target, 0):
            return found.top
        if found.ended != CONVERGED:
            return -1


@kernel
def _settle(step: Step, path: Path, m: Master) -> bool:
    """Place the patterns that the master takes whole, or else the strongest one; False where that fails."""
    strongest, top = -1, 0.0
    for b in range(m.counts.tight):
        j = m.basic[b]
        if m.value[j] < 0.0:
            if m.level[b] > NOTHING:
                return False  # a worker cannot be served
        elif m.level[b] > top + 1e-9 and path.placed[m.owner[j]] < step.slots[m.owner[j]]:
            strongest, top = j, m.level[b]
    if strongest < 0:
        return False
    for b in range(m.counts.tight):
        j = m.basic[b]
        w = m.owner[j]
        if m.value[j] >= 0.0 and (j == strongest or m.level[b] > WHOLE) and path.placed[w] < step.slots[w]:
            for q in range(step.slots[w]):
                put(path, m.items[j, q], w)
    return True
