"""Solve the master program at one envelope: restricted program, prices, new patterns, until nothing is gained.

Every round adds the best pattern of each worker at the new prices and one whole assignment filled at these prices: the
first say where the bound is, the second keeps the restricted program supplied with patterns that go together.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
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

#: Pivots after which rounding is taken out of the duals.
REFRESH = 50


@kernel
def reoptimise(m: Master, W: int, K: int, priced: float, pivots: int) -> None:
    """Pivot until no known column and no slack gains more than `priced`, at most `pivots` times.

    Parameters
    ----------
    m
        Master program; changes in place.
    W, K
        Workers and size classes in the master.
    priced, pivots
        Gain that still counts, tokens; most pivots.
    """
    for turn in range(pivots):
        if turn % REFRESH == 0:
            refresh_duals(m)
        position, gain = best_slack(m, W, priced)
        column, gain = best_column(m, W, gain)
        if column >= 0:
            if not enter_column(m, column, gain, W, K):
                break
        elif position < 0 or not enter_slack(m, position, W, K):
            break
    refresh_duals(m)


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
def generate_columns(step: Step, search: Search, m: Master, M: int, enough: int, rounds: int) -> tuple[int, bool, int]:
    """Lower the bound on the admitted tokens at envelope M until it is at most `enough` or cannot fall.

    Starts from search.price and a master `m` that was reset or moved to M. Leaves the prices of the best bound in
    search.best_price and the best assignment that was filled in search.spare.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    m
        Master program; changes in place.
    M
        Envelope, tokens.
    enough, rounds
        Bound that suffices, tokens; most rounds.

    Returns
    -------
    scaled, converged, tokens
        The best bound times scale; whether it cannot fall any more; tokens of that assignment, -1 for none.
    """
    v, n, slots, floor = step.v, step.n, step.slots, step.floor
    price, best_price, value, bound = search.price, search.best_price, search.value, search.bound
    W, K, scale = slots.size, v.size, step.scale
    bonus = 0
    for k in range(K):
        bonus = max(bonus, -floor[k] // scale)
    # Duals are sums of values of this size, so differences below are noise.
    priced = max(PRICED, 1e-12 * (M + bonus) * (W + 1))
    lowest = 1 << 62
    top = -1
    effort = QUICK
    for _ in range(rounds):
        total = evaluate(step, search, M, effort)
        loose = False
        for w in range(W):
            loose = loose or value[w] < bound[w]
        if total < lowest:
            lowest = total
            for k in range(K):
                best_price[k] = price[k]
            if lowest // scale <= enough:
                return lowest, False, top
        add_patterns(m, step, bonus, search.pattern)
        tokens = fill(step, search, M, n, search.undecided, search.leaf)
        if tokens >= 0:
            if tokens > top:
                top = tokens
                for w in range(W):
                    for q in range(slots[w]):
                        search.spare[w, q] = search.leaf[w, q]
            add_patterns(m, step, bonus, search.leaf)
        before = m.counts.pivots
        reoptimise(m, W, K, priced, PIVOTS)
        if m.counts.pivots == before:
            if effort == EXACT or not loose:
                return lowest, True, top
            effort = EXACT  # converged at bounds that are not exact: go on with exact ones
            continue
        for k in range(K):
            q = m.place[W + k]
            price[k] = floor[k] + (max(0, int(m.dual[q] * scale + 0.5)) if q >= 0 else 0)
    return lowest, False, top
