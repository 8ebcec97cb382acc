"""The ranges of envelopes that are still open, and which envelopes there are."""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.pattern import BRANCHES, best_pattern, prefix_best
from lbopt.kernels.search.state import Search, Step

#: Envelopes that stay open at the same prices, after which one gets prices of its own.
ASTRAY = 32

#: The stage of a range that nothing has been done with.
FRESH = 0


@kernel
def push(search: Search, bound: int, first: int, last: int, priced: int) -> int:
    """Add an open range and return its number; -1 where there is no room for it. A full list reuses closed ranges.

    Parameters
    ----------
    search
        State of the search; its ranges change in place.
    bound
        Lower bound on the cost in this range, tokens.
    first, last
        Envelopes, tokens.
    priced
        Number of prices there were when the bound was evaluated.
    """
    at, ranges = search.known.ranges, search.ranges
    if at < ranges.size:
        search.known.ranges = at + 1
    else:
        at = 0
        while at < ranges.size and ranges[at].bound < search.known.cost:
            at += 1
        if at == ranges.size:
            return -1
    new = ranges[at]
    new.bound, new.first, new.last, new.stage, new.priced, new.times = bound, first, last, FRESH, priced, 0
    return at


@kernel
def begin(step: Step, search: Search, least: int) -> None:
    """Open ranges from the least envelope there is, not below `least`, to the last one that could be better."""
    load, slots, sums = step.load, step.slots, step.sums
    G, total, M, most = step.workers, step.total, step.heaviest, step.most
    for w in range(load.size):
        M = max(M, load[w] + sums[slots[w]])
    M = max(M, least)
    end = (search.known.cost - 1 + total + most) // G
    search.known.strayed, search.known.astray = 0, ASTRAY
    width = 1
    while end >= M:
        last = min(end, M + width - 1)
        push(search, max(0, G * M - total - most), M, last, 0)
        M = last + 1
        width *= 2


@kernel
def cheapest(search: Search) -> int:
    """Return the open range with the least bound, the one that has come furthest among equals; -1 for none."""
    ranges = search.ranges
    best, lowest, furthest = -1, 0, 0
    for j in range(search.known.ranges):
        bound = ranges[j].bound
        if best < 0 or bound < lowest or (bound == lowest and ranges[j].stage > furthest):
            best, lowest, furthest = j, bound, ranges[j].stage
    return best


@kernel
def reached(step: Step, search: Search, M: int) -> int:
    """Return the largest load of at most M that some worker can have, M itself where that is not settled quickly."""
    v, n, load, slots = step.v, step.n, step.load, step.slots
    best, out = search.best, search.leaf
    prefix_best(v.size, v, n, best)
    top = step.heaviest
    for w in range(load.size):
        if used_up(search.known):
            return M
        margin = M - load[w]
        value, bound = best_pattern(
            *(margin, slots[w], 1, margin, margin, BRANCHES, v, v, n, best, step.sums, out[w], search.partner),
            *(0, 0, best, best, search.known),
        )
        if bound >= 0:
            top = max(top, load[w] + (value if value == bound else margin))
    return top
