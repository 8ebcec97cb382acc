"""Solve the master program at one envelope: restricted program, prices, new patterns, until nothing is gained.

Every round adds the best pattern of each worker at the new prices and one whole assignment filled at these prices: the
first say where the bound is, the second keeps the restricted program supplied with patterns that go together.

Of a large fleet one restricted program takes seconds. So the work is booked pivot by pivot, and where a slice of it is
used up everything stays as it is, to be taken up again: how the work is sliced changes nothing of what is found.
"""

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.master import (
    PRICED,
    add_column,
    best_column,
    best_slack,
    drop_columns,
    enter_column,
    enter_slack,
    refresh_duals,
)
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, QUICK, Master, Search, Step

#: Pivots after which one restricted program is left as it is.
PIVOTS = 5_000

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
def reoptimise(
    m: Master, W: int, K: int, priced: float, pivots: int, state: Record, known: Record, books: bool, stop: int
) -> bool:
    """Pivot until no known column and no slack gains more than `priced`, at most `pivots` times.

    Returns whether it ended; False where the work reached `stop` before: the next call goes on. Where the deadline
    passes, it ends as it is.

    Parameters
    ----------
    m
        Master program; changes in place.
    W, K
        Workers and size classes in the master.
    priced, pivots
        Gain that still counts, tokens; most pivots.
    state, known
        PIVOTING, with 0 turns where it begins; KNOWN, whose work grows where this books it.
    books, stop
        Whether the pivots are booked as work here; the work after which to stop.
    """
    while state.turns < pivots and not used_up(known):
        if known.work >= stop:
            return False
        if state.turns % REFRESH == 0:
            refresh_duals(m)
        before = m.counts.entries
        position, gain = best_slack(m, W, priced)
        column, gain = best_column(m, W, gain)
        if column >= 0:
            if not enter_column(m, column, gain, W, K):
                break
        elif position < 0 or not enter_slack(m, position, W, K):
            break
        state.turns += 1
        if books:
            state.entries += m.counts.entries - before + m.items.shape[1] * (m.counts.columns + m.counts.tight)
            known.work += state.entries // _ENTRIES
            state.entries %= _ENTRIES
    state.turns = 0
    refresh_duals(m)
    return True


@kernel
def add_patterns(m: Master, step: Step, bonus: int, pattern: Ints) -> None:
    """Add pattern[w, :slots[w]] of every worker as a column; forced requests are worth `bonus` more than their size.

    Parameters
    ----------
    m
        Master program; changes in place.
    step
        The decision.
    bonus
        Tokens that a forced request is worth beyond its size.
    pattern
        int64 (W, Q) at least: classes of each worker; rows that begin with -1 are passed over.
    """
    v, slots, floor = step.v, step.slots, step.floor
    if m.counts.columns + slots.size > m.owner.size:
        drop_columns(m)
    for w in range(slots.size):
        if pattern[w, 0] < 0:
            continue
        size, worth = 0, 0
        for q in range(slots[w]):
            size += v[pattern[w, q]]
            worth += v[pattern[w, q]] + (bonus if floor[pattern[w, q]] < 0 else 0)
        add_column(m, w, pattern[w], slots[w], size, float(worth))


@kernel
def begin_columns(search: Search) -> None:
    """Let the next column generation begin."""
    state, pivoting = search.pricing.generation, search.pricing.pivoting
    state.turns, state.lowest, state.top, state.effort = 0, NO_BOUND, -1, QUICK
    state.pivoting, state.converged, state.before = 0, 0, 0
    pivoting.turns, pivoting.entries = 0, 0


@kernel
def generate_columns(step: Step, search: Search, m: Master, M: int, enough: int, rounds: int, stop: int) -> bool:
    """Lower the bound on the admitted tokens at envelope M until it is at most `enough` or cannot fall.

    Starts from search.price and a master `m` that was reset or moved to M, after `begin_columns`. Leaves the prices of
    the best bound in search.best_price, the best assignment that was filled in search.spare, and in
    search.pricing.generation the bound (`lowest`), whether it cannot fall any more (`converged`), and the tokens of
    that assignment (`top`). Returns whether it ended; where the work reached `stop` before, the next call goes on.
    Where the deadline passes, it ends with what it has.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    m
        Master program; changes in place.
    M
        Envelope, tokens.
    enough, rounds, stop
        Bound that suffices, tokens; most rounds; work of the search after which to stop.
    """
    v, slots, floor = step.v, step.slots, step.floor
    price, best_price, value, bound = search.price, search.best_price, search.value, search.bound
    W, K, scale = slots.size, v.size, step.scale
    bonus = 0
    for k in range(K):
        bonus = max(bonus, -floor[k] // scale)
    # Duals are sums of values of this size, so differences below are noise.
    priced = max(PRICED, 1e-12 * (M + bonus) * (W + 1))
    state, known = search.pricing.generation, search.known
    while state.turns < rounds:
        if state.pivoting == 0:
            if known.work >= stop:
                return False
            if used_up(known):
                return True
            total = evaluate(step, search, M, state.effort)
            if total < state.lowest:
                state.lowest = total
                for k in range(K):
                    best_price[k] = price[k]
                if total // scale <= enough:
                    return True
            if used_up(known):
                return True
            add_patterns(m, step, bonus, search.pattern)
            tokens = fill(step, search, M, search.leaf)
            if tokens >= 0:
                if tokens > state.top:
                    state.top = tokens
                    for w in range(W):
                        for q in range(slots[w]):
                            search.spare[w, q] = search.leaf[w, q]
                add_patterns(m, step, bonus, search.leaf)
            known.work += EVALUATION + W // 3
            state.before = m.counts.pivots
            state.pivoting = 1
        if not reoptimise(m, W, K, priced, PIVOTS, search.pricing.pivoting, known, True, stop):
            return False
        state.pivoting = 0
        state.turns += 1
        if used_up(known):
            return True
        if m.counts.pivots == state.before:
            loose = False
            for w in range(W):
                loose = loose or value[w] < bound[w]
            if state.effort == EXACT or not loose:
                state.converged = 1
                return True
            state.effort = EXACT  # converged at bounds that are not exact: go on with exact ones
            continue
        for k in range(K):
            q = m.place[W + k]
            price[k] = floor[k] + (max(0, int(m.dual[q] * scale + 0.5)) if q >= 0 else 0)
    return True
