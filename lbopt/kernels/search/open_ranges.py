"""The ranges of envelopes that are still open, and which envelopes there are."""

from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import BRANCHES, best_pattern, prefix_best
from lbopt.kernels.search.terms import (
    COST,
    FIRST,
    HEAVIEST,
    LAST,
    LB,
    MOST,
    NODES,
    STAGE,
    TIMES,
    TOTAL,
    TRIED,
    WORKERS,
    Search,
    Step,
)

#: The stage of a range that nothing has been done with.
FRESH = 0


@kernel
def push(search: Search, lb: int, first: int, last: int, tried: int) -> bool:
    """Add an open range; False where there is no room for it."""
    count = search.known[NODES]
    if count >= search.node.shape[0]:
        return False
    node = search.node[count]
    node[LB], node[FIRST], node[LAST], node[STAGE], node[TRIED], node[TIMES] = lb, first, last, FRESH, tried, 0
    search.known[NODES] = count + 1
    return True


@kernel
def begin(step: Step, search: Search) -> None:
    """Open ranges from the least possible envelope to the last one that could beat the best assignment."""
    load, slots, sums, facts = step.load, step.slots, step.sums, step.facts
    G, total, M, most = facts[WORKERS], facts[TOTAL], facts[HEAVIEST], facts[MOST]
    for w in range(load.size):
        M = max(M, load[w] + sums[slots[w]])
    end = (search.known[COST] - 1 + total + most) // G
    width = 1
    while end >= M:
        last = min(end, M + width - 1)
        push(search, max(0, G * M - total - most), M, last, 0)
        M = last + 1
        width *= 2


@kernel
def cheapest(search: Search) -> int:
    """Return the open range with the least bound, the one that has come furthest among equals; -1 for none."""
    node = search.node
    best = -1
    for j in range(search.known[NODES]):
        if (
            best < 0
            or node[j, LB] < node[best, LB]
            or (node[j, LB] == node[best, LB] and node[j, STAGE] > node[best, STAGE])
        ):
            best = j
    return best


@kernel
def reached(step: Step, search: Search, M: int) -> int:
    """Return the largest load of at most M that some worker can have, M itself where that is not settled quickly."""
    v, n, load, slots = step.v, step.n, step.load, step.slots
    best, out = search.short[0], search.leaf
    prefix_best(v.size, v, n, best)
    top = step.facts[HEAVIEST]
    for w in range(load.size):
        margin = M - load[w]
        value, bound = best_pattern(
            *(margin, slots[w], 1, margin, margin, BRANCHES, v, v, n, best, step.sums, out[w], search.short[1]),
            *(0, best, best),
        )
        if bound >= 0:
            top = max(top, load[w] + (value if value == bound else margin))
    return top
