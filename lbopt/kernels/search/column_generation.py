"""Solve the master program at one envelope: restricted program, prices, new patterns, until nothing is gained."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.master import PRICED, Master, add_column, best_column, best_slack, enter_column, enter_slack, refresh_duals
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.prices import EXACT, QUICK, evaluate


@kernel
def reoptimise(m: Master, W: int, pivots: int) -> int:
    """Pivot until no known column and no slack gains anything; return the pivots left."""
    while pivots > 0:
        refresh_duals(m)
        position, gain = best_slack(m, W, PRICED)
        column, gain = best_column(m, W, gain)
        if column >= 0:
            if not enter_column(m, column, W):
                break
        elif position < 0 or not enter_slack(m, position, W):
            break
        pivots -= 1
    return pivots


@kernel
def add_patterns(m: Master, slots: Ints, v: Ints, pattern: Ints) -> bool:
    """Add pattern[w, :slots[w]] of every worker as a column; False where the table is full."""
    for w in range(slots.size):
        if pattern[w, 0] < 0:
            continue
        tokens = 0
        for q in range(slots[w]):
            tokens += v[pattern[w, q]]
        if add_column(m, w, pattern[w], slots[w], float(tokens)) < 0:
            return False
    return True


@kernel
def generate_columns(
    m: Master,
    M: int,
    scale: int,
    enough: int,
    rounds: int,
    v: Ints,
    n: Ints,
    price: Ints,
    load: Ints,
    slots: Ints,
    rank: Ints,
    sums: Ints,
    short: Ints,
    table: Ints,
    value: Ints,
    bound: Ints,
    pattern: Ints,
    best_price: Ints,
    undecided: Ints,
    rows: Ints,
    answer: Ints,
) -> tuple[int, int, int, int]:
    W = load.size
    lowest = 1 << 62
    top = -1
    effort = QUICK
    p, best, now, some = short[0], short[1], short[2], short[3]
    for used in range(rounds):
        total = evaluate(M, scale, effort, v, n, price, load, slots, sums, short, table, value, bound, pattern)
        if total < lowest:
            lowest = total
            for k in range(v.size):
                best_price[k] = price[k]
            if lowest // scale <= enough:
                return lowest, used, 0, top
        if not add_patterns(m, slots, v, pattern):
            return lowest, used, 2, top
        least = 0
        for k in range(v.size):
            p[k] = scale * v[k] - price[k]
            least = min(least, price[k])
        tokens = fill(M, scale, least, v, p, n, load, slots, rank, undecided, rows, pattern, best, some, now)
        if tokens > top:
            top = tokens
            for w in range(W):
                for q in range(slots[w]):
                    answer[w, q] = pattern[w, q]
        if not add_patterns(m, slots, v, pattern):
            return lowest, used, 2, top
        before = m.count[2]
        reoptimise(m, W, 100000)
        if m.count[2] == before:
            loose = False
            for w in range(W):
                loose = loose or value[w] < bound[w]
            if effort == EXACT or not loose:
                return lowest, used, 0, top
            effort = EXACT
            continue
        for k in range(v.size):
            q = m.place[W + k]
            price[k] = max(0, int(m.dual[q] * scale + 0.5)) if q >= 0 else 0
    return lowest, rounds, 1, top
