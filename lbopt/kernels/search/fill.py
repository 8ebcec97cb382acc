"""One assignment at an envelope: each worker in turn takes its best priced pattern among the requests that are left."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.pattern import best_pattern, prefix_best, smallest_sums
from lbopt.kernels.search.state import NONE, Search, Step

#: Branches of the search for a worker's pattern: assignments are filled by the dozen, and any good pattern will do.
FILLING = 300


@kernel
def fill(step: Step, search: Search, M: int, pattern: Ints) -> int:
    """Serve all workers at search.price; return the tokens admitted, -1 where one or a forced request fails.

    Beyond the deadline it fails, too.

    Workers come in the order of step.rank, fewest slots and tightest margin first: they have the least choice.
    Profits are tilted by 1/scale a token, so that among equally good patterns the one with most tokens is taken.
    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    M
        Envelope, tokens.
    pattern
        int64 (W, 3 Q + 4), written: classes of each worker; scratch beyond 2 Q.
    """
    v, floor, load, slots, rank = step.v, step.floor, step.load, step.slots, step.rank
    price = search.price
    filling = search.filling
    p, best, sums, now = filling.profit, filling.best, filling.sums, filling.left
    scale = step.scale + 1
    tokens = 0
    lowest = 0
    for k in range(v.size):
        now[k] = step.n[k]
        p[k] = scale * v[k] - price[k]
        lowest = min(lowest, price[k])
    for r in range(load.size):
        if used_up(search.known):
            return -1
        w = rank[r]
        c = slots[w]
        smallest_sums(v, now, sums[: c + 1])
        prefix_best(v.size, p, now, best)
        margin = M - load[w]
        full = scale * margin - c * lowest
        value, _ = best_pattern(
            *(margin, c, scale, full, full, FILLING, v, p, now, best, sums, pattern[w], pattern[w, 2 * c :]),
            *(0, 0, best, best, search.known),
        )
        if value == NONE:
            return -1
        for q in range(c):
            now[pattern[w, q]] -= 1
            tokens += v[pattern[w, q]]
    if step.forced > 0:
        for k in range(v.size):
            if floor[k] < 0 and now[k] > 0:
                return -1
    return tokens
