"""Descents at one envelope, one after the other: they raise its bound, meet it, or are left pending between slices."""

from lbopt.kernels.compile import kernel
from lbopt.kernels.search.descent import descend, start_descent
from lbopt.kernels.search.keeping import improve, recall
from lbopt.kernels.search.near_optimal import list_all
from lbopt.kernels.search.open_ranges import SHOWN_ANEW, close_in
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, QUICK, Search, Step

#: How a descent ends for the range that it is made for; one that is pending goes on before anything else.
UNCHANGED, RAISED, PENDING = 0, 1, 2

#: Rows of lists that the first descent may go through.
MOST_ROWS = 400_000

#: Nodes of a descent between two looks at the clock.
CHUNK = 400


@kernel
def _price_descent(step: Step, search: Search, i: int, level: int) -> int:
    """Take the best prices known for the envelope of range i, and return their bound.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    i
        Open range in search.ranges.
    level
        Level of the descent; below 0 bounds need not be exact.
    """
    known, M = search.known, search.ranges[i].last
    effort = EXACT if level >= 0 else QUICK
    scaled = 1 << 62
    which = last = 0
    for j in range(min(known.prices, search.bank.shape[0])):
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

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    i
        Open range in search.ranges; its bound and stage change in place.
    most, nodes
        Patterns listed for a worker; nodes of the descent.
    level
        Level of the descent; below 0 bounds need not be exact.
    """
    this, known, descent = search.ranges[i], search.known, search.descent.state
    G, total, scale = step.workers, step.total, step.scale
    M = this.last
    resumed = descent.left > 0
    if not resumed:
        descent.start, descent.scaled, descent.extra = this.bound, _price_descent(step, search, i, level), 0
        descent.raised = 0
    lb, scaled = descent.start, descent.scaled
    while lb + descent.extra < known.cost:
        target = max(G * this.first - total - lb - descent.extra, step.least)
        budget = scaled - scale * target
        state = 0
        if budget >= 0:  # else exact bounds alone show that there is none
            if not resumed:
                descent.rows = list_all(step, search, M, budget, most)
                start_descent(step, search, budget)
                descent.left = min(nodes, max(MOST_ROWS // (1 + descent.rows), 1)) if level == 0 else nodes
            resumed = False
            some = min(descent.left, CHUNK)
            state, top, unused = descend(step, search, M, target, some)
            descent.left -= some - unused
            known.work += 10 + (some - unused) * (1 + descent.rows // 500)
            if state < 0 and unused == 0 and descent.left > 0:
                return PENDING
            descent.left = 0
            if top >= 0:
                improve(step, search, search.spare, M, top, 100)
        if state == 0:
            close_in(this, lb + descent.extra + 1, SHOWN_ANEW)
            descent.raised = 1
        else:
            break
        descent.extra = min(2 * descent.extra + 1, max(descent.extra + 1, known.cost - 1 - lb))
    descent.left = 0  # also where a better assignment, found elsewhere, made the rest of a pending one needless
    return RAISED if descent.raised == 1 or known.cost <= lb else UNCHANGED
