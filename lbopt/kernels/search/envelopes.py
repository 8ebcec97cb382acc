"""The search over the envelope M: open ranges of M, cheapest bound first, each closed by prices or by descent.

A solution with largest load M costs G M - (loads before) - T, so a bound on the tokens T that fit under M bounds the
cost, and a bound at b serves a whole range a..b: cost >= G a - (loads before) - T(b). The search keeps a list of open
ranges and always takes the one with the least bound:

1. it is evaluated at the newest prices;
2. a range of several M is halved;
3. the first single M gets prices of one threshold for all classes, a first assignment, a short descent;
4. then the master program, whose prices are the best there are, and a dive for an assignment;
5. then descents with growing limits: each finds an assignment as cheap as the bound, or shows that there is none.

It ends when no open range is below the best assignment. All bounds are exact integers, and the search can be stopped
and taken up again between any two of these steps.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.column_generation import generate_columns
from lbopt.kernels.search.descent import (
    ANY,
    ATTEMPTS,
    BOUNDED,
    EXTRA,
    LEFT,
    RANGE,
    ROWS,
    START,
    descend,
    start_descent,
)
from lbopt.kernels.search.dive import dive
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.master import copy_master, move_envelope, reset_master
from lbopt.kernels.search.near_optimal import list_all
from lbopt.kernels.search.open_ranges import FRESH, cheapest, push, reached
from lbopt.kernels.search.prices import evaluate, threshold_prices
from lbopt.kernels.search.rematch import rematch
from lbopt.kernels.search.terms import (
    BOUND,
    COST,
    EXACT,
    FIRST,
    FORCED,
    HEAVIEST,
    LAST,
    LB,
    NONE,
    OPEN,
    PATIENCE,
    PRICES,
    PROVED,
    QUICK,
    ROUGH,
    SCALE,
    STAGE,
    STUCK,
    TIMES,
    TOTAL,
    TRIED,
    WARM,
    WORK,
    WORKERS,
    Masters,
    Search,
    Step,
)

# stages of a single envelope, beyond a fresh one; later ones count the descents
_THRESHOLD, _MASTER = 1, 2

#: How a descent ends for the range that it is made for; one that is pending goes on before anything else.
UNCHANGED, RAISED, PENDING = 0, 1, 2

#: Nodes of a descent between two looks at the clock.
CHUNK = 400

#: Patterns listed for a worker, nodes of a descent: at the first level; both grow with every level.
LISTED, BRIEF = 200, 300

#: Rows of the longest lists; beyond, a worker counts as not listed.
LONGEST = 40_000

#: Levels of descents before an envelope is given up.
LEVELS = 9

#: Pivots after which a master is begun anew, to be rid of rounding.
MOST_PIVOTS = 20_000

#: From this size on, most envelopes are loads that no worker can have.
SPARSE = 1 << 16

_CLOSED = 1 << 62


@kernel
def offer(step: Step, search: Search, pattern: Ints, tokens: int) -> None:
    """Keep an assignment if it is the best so far; its cost is taken at the load it really reaches."""
    load, slots, v, facts = step.load, step.slots, step.v, step.facts
    if facts[FORCED] > 0:
        waiting = search.classes[5]
        for k in range(v.size):
            waiting[k] = step.n[k]
        for w in range(load.size):
            for q in range(slots[w]):
                waiting[pattern[w, q]] -= 1
        for k in range(v.size):
            if step.floor[k] < 0 and waiting[k] > 0:
                return  # a request that must be admitted is not
    M = facts[HEAVIEST]
    for w in range(load.size):
        after = load[w]
        for q in range(slots[w]):
            after += v[pattern[w, q]]
        M = max(M, after)
    cost = facts[WORKERS] * M - facts[TOTAL] - tokens
    if cost < search.known[COST]:
        search.known[COST] = cost
        for w in range(load.size):
            for q in range(slots[w]):
                search.answer[w, q] = pattern[w, q]


@kernel
def _improve(step: Step, search: Search, pattern: Ints, M: int, tokens: int, rounds: int) -> None:
    """Offer an assignment and what `rematch` makes of it."""
    facts = step.facts
    offer(step, search, pattern, tokens)
    target = facts[WORKERS] * M - facts[TOTAL] - search.known[BOUND]
    if tokens < target and facts[FORCED] == 0:  # a rematch might drop a forced request
        tokens = rematch(step, search, M, target, rounds, pattern)
        offer(step, search, pattern, tokens)
        search.known[WORK] += rounds * (5 + step.load.size // 5)


@kernel
def _place_in_bank(search: Search, count: int) -> int:
    """Return where the count-th prices are kept: the first ones for good, the others in a ring."""
    P = search.bank.shape[0]
    return count if count < P else 1 + (count - 1) % (P - 1)


@kernel
def _keep_prices(step: Step, search: Search, M: int) -> None:
    """Remember search.best_price, found at envelope M."""
    at = _place_in_bank(search, search.known[PRICES])
    for k in range(step.v.size):
        search.bank[at, k] = search.best_price[k]
    search.bank_at[at] = M
    search.known[PRICES] += 1


@kernel
def _recall(step: Step, search: Search, at: int) -> None:
    for k in range(step.v.size):
        search.price[k] = search.bank[at, k]


@kernel
def advance(step: Step, search: Search, masters: Masters, budget: int) -> int:
    """Search until everything is closed or `budget` is spent (units of about 1 microsecond).

    Returns PROVED, OPEN (more budget may help) or STUCK (no method is left for the cheapest range).
    """
    facts, node, known = step.facts, search.node, search.known
    G, total, scale, W = facts[WORKERS], facts[TOTAL], facts[SCALE], step.load.size
    stop = known[WORK] + budget
    sparse = step.v[step.v.size - 1] > SPARSE
    while True:
        pending = search.cut[LEFT] > 0
        i = search.cut[RANGE] if pending else cheapest(search)
        if not pending:
            if i < 0 or node[i, LB] >= known[COST]:
                known[BOUND] = known[COST]
                return PROVED
            known[BOUND] = node[i, LB]
        if known[WORK] >= stop:
            return OPEN
        a, b, stage = node[i, FIRST], node[i, LAST], node[i, STAGE]
        if not pending and node[i, TRIED] < known[PRICES] and (a < b or node[i, TIMES] <= known[PATIENCE]):
            # newest prices first: they were found nearest to where the search is now
            _recall(step, search, _place_in_bank(search, known[PRICES] - 1))
            node[i, TRIED] = known[PRICES]
            node[i, TIMES] += 1
            tokens = evaluate(step, search, b, QUICK if a == b else ROUGH)
            known[WORK] += 5 + W // 3
            if tokens == NONE:
                node[i, LB] = _CLOSED
            else:
                node[i, LB] = max(node[i, LB], G * a - total - tokens // scale)
        elif sparse and stage == FRESH and reached(step, search, b) < b:
            # no worker can have a load of b: skip what nobody can reach
            b = reached(step, search, b)
            known[WORK] += 5 + W // 3
            node[i, LAST], node[i, TRIED] = b, 0
            if b < a:
                node[i, LB] = _CLOSED
        elif a < b:
            known[WORK] += 1
            middle = (a + b) // 2
            lb, tried = node[i, LB], node[i, TRIED]
            node[i, LAST], node[i, TRIED] = middle, 0
            # the bound at b was a rough one; alone, it is worth a better one
            if not push(search, lb, middle + 1, b, tried if middle + 1 < b else 0):
                return STUCK
        elif stage == FRESH:
            node[i, STAGE] = _THRESHOLD
            if known[PRICES] == 0:  # later on, prices from another envelope are a better start
                _first_prices(step, search, i)
        elif stage == _THRESHOLD:
            node[i, STAGE] = _MASTER
            _best_prices(step, search, masters, i)
        else:
            level = stage - _MASTER
            if level > LEVELS:
                return STUCK
            ending = _try_descent(step, search, i, min(LISTED << (2 * level), LONGEST), BRIEF << (3 * level), level)
            if ending == PENDING:
                search.cut[RANGE] = i
            elif ending == UNCHANGED:
                node[i, STAGE] = stage + 1


@kernel
def _first_prices(step: Step, search: Search, i: int) -> None:
    """Price the envelope of range i by a threshold, fill at these prices, and descend a little."""
    facts, node, known = step.facts, search.node, search.known
    M, W = node[i, FIRST], step.load.size
    tokens = threshold_prices(step, search, M)
    known[WORK] += 50 + 5 * W
    if tokens == NONE:
        node[i, LB] = _CLOSED
        return
    node[i, LB] = max(node[i, LB], facts[WORKERS] * M - facts[TOTAL] - tokens // facts[SCALE])
    known[BOUND] = node[i, LB]
    _keep_prices(step, search, M)
    node[i, TRIED] = known[PRICES]
    _recall(step, search, _place_in_bank(search, known[PRICES] - 1))
    reached = fill(step, search, M, step.n, search.undecided, search.leaf)
    if reached >= 0:
        _improve(step, search, search.leaf, M, reached, 40)
    if node[i, LB] < known[COST]:
        _try_descent(step, search, i, LISTED, min(W + 10, CHUNK), -1)


@kernel
def _best_prices(step: Step, search: Search, masters: Masters, i: int) -> None:
    """Solve the master program at the envelope of range i, then dive from its optimum."""
    facts, node, known = step.facts, search.node, search.known
    G, total, M, W = facts[WORKERS], facts[TOTAL], node[i, FIRST], step.load.size
    m = masters.whole
    if known[WARM] == 0 or m.counts[2] > MOST_PIVOTS:
        reset_master(m, step.n, W, 2.0 * M + 1.0)
        known[WARM] = 1
    else:
        move_envelope(m, step.load, M, 2.0 * M + 1.0)
    before = m.counts[2]
    _recall(step, search, _place_in_bank(search, known[PRICES] - 1))
    scaled, converged, top = generate_columns(step, search, m, M, G * M - total - known[COST], 300)
    work = 10 + (m.counts[2] - before) * (W + m.counts[1]) ** 2 // 1000
    known[WORK] += work
    known[PATIENCE] = (known[PATIENCE] + work // (4 * (5 + W // 3))) // 2
    node[i, LB] = max(node[i, LB], G * M - total - scaled // facts[SCALE])
    known[BOUND] = max(known[BOUND], min(node[i, LB], known[COST]))
    _keep_prices(step, search, M)
    node[i, TRIED] = known[PRICES]
    if top >= 0:
        _improve(step, search, search.spare, M, top, 100)
    if converged and node[i, LB] < known[COST]:
        _recall(step, search, _place_in_bank(search, known[PRICES] - 1))
        copy_master(m, masters.rest, W, step.v.size)
        top, pivots = dive(step, search, masters.rest, M, G * M - total - node[i, LB], LISTED, LISTED, search.kept)
        known[WORK] += pivots * (W + m.counts[1]) ** 2 // 1000
        if top >= 0:
            _improve(step, search, search.kept, M, top, 100)


@kernel
def _price_descent(step: Step, search: Search, i: int, level: int) -> int:
    """Take the best prices known for the envelope of range i, and return their bound."""
    known, M = search.known, search.node[i, FIRST]
    effort = EXACT if level >= 0 else QUICK
    scaled = 1 << 62
    which = last = 0
    for j in range(min(known[PRICES], search.bank.shape[0])):
        if search.bank_at[j] == M:
            _recall(step, search, j)
            last = j
            tokens = evaluate(step, search, M, effort)
            if tokens < scaled:
                scaled, which = tokens, j
    if which != last or scaled == 1 << 62:
        _recall(step, search, which)
        scaled = evaluate(step, search, M, effort)
    return scaled


@kernel
def _try_descent(step: Step, search: Search, i: int, most: int, nodes: int, level: int) -> int:
    """Descend at the envelope of range i with its best prices; go on with a descent that was left pending.

    First for an assignment as cheap as the bound, then, as long as there is none, for dearer ones in doubling steps. At
    level 0 also where it stayed open: slightly dearer ones are found sooner. Returns RAISED where that raised the
    range's bound or met it, UNCHANGED, or PENDING: it is to be called again with the same arguments.
    """
    facts, node, known, cut = step.facts, search.node, search.known, search.cut
    G, total, scale = facts[WORKERS], facts[TOTAL], facts[SCALE]
    M = node[i, FIRST]
    resumed = cut[LEFT] > 0
    if not resumed:
        cut[START], cut[BOUNDED], cut[EXTRA] = node[i, LB], _price_descent(step, search, i, level), 0
        cut[ATTEMPTS] = cut[ANY] = 0
    lb, scaled = cut[START], cut[BOUNDED]
    while lb + cut[EXTRA] < known[COST]:
        target = G * M - total - lb - cut[EXTRA]
        budget = scaled - scale * target
        state = 0
        if budget >= 0:  # else exact bounds alone show that there is none
            if not resumed:
                cut[ROWS] = list_all(step, search, M, budget, most)
                start_descent(step, search, budget)
                cut[LEFT] = nodes
            resumed = False
            some = min(cut[LEFT], CHUNK)
            state, top, unused = descend(step, search, M, target, some)
            cut[LEFT] -= some - unused
            known[WORK] += 10 + (some - unused) * (1 + cut[ROWS] // 500)
            if state < 0 and unused == 0 and cut[LEFT] > 0:
                return PENDING
            cut[LEFT] = 0
            if top >= 0:
                _improve(step, search, search.spare, M, top, 100)
        if state == 0:
            node[i, LB] = lb + cut[EXTRA] + 1
            cut[ANY] = 1
        elif state == 1 or cut[ANY] == 1 or level != 0 or cut[ATTEMPTS] == 5:
            break
        cut[ATTEMPTS] += 1
        cut[EXTRA] = min(2 * cut[EXTRA] + 1, max(cut[EXTRA] + 1, known[COST] - 1 - lb))
    return RAISED if cut[ANY] == 1 or known[COST] <= lb else UNCHANGED
