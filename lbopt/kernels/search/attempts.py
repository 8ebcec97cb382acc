"""Descents at one envelope, one after the other: they raise its bound, meet it, or are left pending between slices."""

from lbopt.kernels.compile import kernel
from lbopt.kernels.search.descent import (
    ANY,
    BOUNDED,
    EXTRA,
    LEFT,
    ROWS,
    START,
    descend,
    start_descent,
)
from lbopt.kernels.search.keeping import improve, recall
from lbopt.kernels.search.near_optimal import list_all
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.terms import (
    COST,
    EXACT,
    FIRST,
    LB,
    PRICES,
    QUICK,
    SCALE,
    TOTAL,
    WORK,
    WORKERS,
    Search,
    Step,
)

#: How a descent ends for the range that it is made for; one that is pending goes on before anything else.
UNCHANGED, RAISED, PENDING = 0, 1, 2

#: Rows of lists that the first descent may go through.
MOST_ROWS = 400_000

#: Nodes of a descent between two looks at the clock.
CHUNK = 400


@kernel
def _price_descent(step: Step, search: Search, i: int, level: int) -> int:
    """Take the best prices known for the envelope of range i, and return their bound."""
    known, M = search.known, search.node[i, FIRST]
    effort = EXACT if level >= 0 else QUICK
    scaled = 1 << 62
    which = last = 0
    for j in range(min(known[PRICES], search.bank.shape[0])):
        if search.bank_at[j] == M:
            recall(step, search, j)
            last = j
            tokens = evaluate(step, search, M, effort)
            if tokens < scaled:
                scaled, which = tokens, j
    if which != last or scaled == 1 << 62:
        recall(step, search, which)
        scaled = evaluate(step, search, M, effort)
    return scaled


@kernel
def try_descent(step: Step, search: Search, i: int, most: int, nodes: int, level: int) -> int:
    """Descend at the envelope of range i with its best prices; go on with a descent that was left pending.

    First for an assignment as cheap as the bound, then, as long as there is none, for dearer ones in doubling steps.
    Returns RAISED where that raised the range's bound or met it, UNCHANGED, or PENDING: it is to be called again with
    the same arguments.
    """
    facts, node, known, cut = step.facts, search.node, search.known, search.cut
    G, total, scale = facts[WORKERS], facts[TOTAL], facts[SCALE]
    M = node[i, FIRST]
    resumed = cut[LEFT] > 0
    if not resumed:
        cut[START], cut[BOUNDED], cut[EXTRA] = node[i, LB], _price_descent(step, search, i, level), 0
        cut[ANY] = 0
    lb, scaled = cut[START], cut[BOUNDED]
    while lb + cut[EXTRA] < known[COST]:
        target = G * M - total - lb - cut[EXTRA]
        budget = scaled - scale * target
        state = 0
        if budget >= 0:  # else exact bounds alone show that there is none
            if not resumed:
                cut[ROWS] = list_all(step, search, M, budget, most)
                start_descent(step, search, budget)
                cut[LEFT] = min(nodes, max(MOST_ROWS // (1 + cut[ROWS]), 1)) if level == 0 else nodes
            resumed = False
            some = min(cut[LEFT], CHUNK)
            state, top, unused = descend(step, search, M, target, some)
            cut[LEFT] -= some - unused
            known[WORK] += 10 + (some - unused) * (1 + cut[ROWS] // 500)
            if state < 0 and unused == 0 and cut[LEFT] > 0:
                return PENDING
            cut[LEFT] = 0
            if top >= 0:
                improve(step, search, search.spare, M, top, 100)
        if state == 0:
            node[i, LB] = lb + cut[EXTRA] + 1
            cut[ANY] = 1
        else:
            break
        cut[EXTRA] = min(2 * cut[EXTRA] + 1, max(cut[EXTRA] + 1, known[COST] - 1 - lb))
    return RAISED if cut[ANY] == 1 or known[COST] <= lb else UNCHANGED
