"""One assignment at an envelope without prices: the slot that needs most takes the request nearest to its need.

What a worker needs is its margin, less what it has, over its slots that are left. The largest need is served first, so
large requests go where there is room for them and small ones are left for many slots. Serving worker after worker
(`fill`) may leave requests that fit nobody, where most of the pool is admitted.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.search.state import Search, Step


@kernel
def fill_evenly(step: Step, search: Search, M: int, first: int, pattern: Ints) -> int:
    """Serve the workers from `first` on; return the tokens admitted, -1 where a slot can take nothing that is left.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, whose scratch changes in place.
    M, first
        Envelope, tokens; first worker that is served.
    pattern
        int64 (W, Q) at least, written: classes of each worker; those before `first` have theirs.
    """
    v, load, slots = step.v, step.load, step.slots
    W, K = load.size, v.size
    left, room, taken = search.filling.left, search.exchanging.slack, search.exchanging.number
    total = tokens = 0
    for k in range(K):
        left[k] = step.n[k]
    for w in range(first):
        for q in range(slots[w]):
            left[pattern[w, q]] -= 1
            tokens += v[pattern[w, q]]
    for w in range(first, W):
        room[w], taken[w] = M - load[w], 0
        total += slots[w]
    for _ in range(total):
        u, most = -1, 0
        for w in range(first, W):
            rest = slots[w] - taken[w]
            if rest > 0 and (u < 0 or room[w] // rest > most):
                u, most = w, room[w] // rest
        rest = slots[u] - taken[u]
        k = last_fitting(v, most)
        while k >= 0 and left[k] == 0:
            k -= 1
        if rest > 1:  # nearest from above or below; the last slot may not exceed what is left
            above = last_fitting(v, most) + 1
            while above < K and left[above] == 0:
                above += 1
            # what the other slots take is at least as much as the smallest requests
            fits = above < K and v[above] + step.sums[rest - 1] <= room[u]
            if fits and (k < 0 or v[above] - most < most - v[k]):
                k = above
        if k < 0:
            return -1
        left[k] -= 1
        pattern[u, taken[u]] = k
        room[u] -= v[k]
        taken[u] += 1
        tokens += v[k]
    return tokens
