"""One assignment at an envelope: each worker in turn takes its best priced pattern among the requests that are left."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import BRANCHES, best_pattern, prefix_best, smallest_sums

_NONE = -(1 << 62)


@kernel
def fill(
    M: int,
    scale: int,
    lowest: int,
    v: Ints,
    p: Ints,
    avail: Ints,
    load: Ints,
    slots: Ints,
    rank: Ints,
    decided: Ints,
    items: Ints,
    pattern: Ints,
    best: Ints,
    sums: Ints,
    now: Ints,
) -> int:
    """Serve the workers with decided[w] < 0 from the requests left; return the tokens admitted by all, -1 where one fails.

    Workers come in the order of `rank`, the tightest margin a slot first: it has the least choice. Profits p are tilted
    by 1/scale a token, so that among equally good patterns the one with most tokens is taken. Fills pattern[w, :slots[w]].
    """
    tokens = 0
    for k in range(v.size):
        now[k] = avail[k]
        p[k] += v[k]
    for r in range(load.size):
        w = rank[r]
        c = slots[w]
        if decided[w] >= 0:
            for q in range(c):
                pattern[w, q] = items[decided[w], q]
        else:
            smallest_sums(v, now, sums[: c + 1])
            prefix_best(v.size, p, now, best)
            margin = M - load[w]
            full = (scale + 1) * margin - c * lowest
            value, _ = best_pattern(margin, c, scale + 1, full, full, BRANCHES, v, p, now, best, sums, pattern[w], pattern[w, 2 * c :])
            if value == _NONE:
                tokens = -1
                break
            for q in range(c):
                now[pattern[w, q]] -= 1
        for q in range(c):
            tokens += v[pattern[w, q]]
    for k in range(v.size):
        p[k] -= v[k]
    return tokens
