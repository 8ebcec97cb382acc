"""Improve an assignment at a fixed envelope: one slot of every worker is opened and all of them are refilled at once.

With its other requests fixed, the open slot of worker w can hold any request of at most (what is in it) + (what is free
up to the envelope). Such limits are nested, so the best refilling of all open slots together is a greedy matching: in
ascending order of the limits, each slot takes the largest request left that fits. It never loses tokens. Rounds repeat
with other slots open, chosen by a small generator of its own (a linear congruence), and between rounds one worker after
the other takes its best pattern from what it has and what is left.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import BRANCHES, best_pattern, last_fitting, prefix_best, smallest_sums

_NONE = -(1 << 62)


@kernel
def rematch(
    M: int,
    scale: int,
    target: int,
    rounds: int,
    seed: int,
    v: Ints,
    n: Ints,
    load: Ints,
    slots: Ints,
    pattern: Ints,
    work: Ints,
    classes: Ints,
) -> int:
    """Improve pattern[w, :slots[w]] in place; return the tokens admitted, at least `target` where that was reached.

    work is scratch (6, W + 1), classes is scratch (6, K).
    """
    W, K = load.size, v.size
    slack, opened, head, link = work[0], work[1], classes[0], work[2]
    avail, p, best, sums = classes[1], classes[2], classes[3], classes[4]
    tokens = 0
    for k in range(K):
        avail[k] = n[k]
        p[k] = scale * v[k]
    for w in range(W):
        slack[w] = M - load[w]
        for q in range(slots[w]):
            k = pattern[w, q]
            avail[k] -= 1
            slack[w] -= v[k]
            tokens += v[k]
    state = seed
    for turn in range(rounds):
        if tokens >= target:
            break
        # Open one slot a worker, and bucket the workers by the largest class the open slot can hold.
        for k in range(K):
            head[k] = -1
        for w in range(W):
            state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
            q = (state >> 33) % slots[w] if slots[w] > 1 else 0
            k = pattern[w, q]
            opened[w] = q
            avail[k] += 1
            slack[w] += v[k]
            tokens -= v[k]
            limit = last_fitting(v, slack[w])
            link[w] = head[limit]
            head[limit] = w
        for limit in range(K):
            w = head[limit]
            k = limit
            while w >= 0:
                while avail[k] == 0:
                    k -= 1
                avail[k] -= 1
                pattern[w, opened[w]] = k
                slack[w] -= v[k]
                tokens += v[k]
                w = link[w]
        # One worker after the other may take another pattern altogether.
        w = turn % W
        c = slots[w]
        if c > 1 and c <= 4 and slack[w] > 0:
            for q in range(c):
                avail[pattern[w, q]] += 1
                slack[w] += v[pattern[w, q]]
                tokens -= v[pattern[w, q]]
            smallest_sums(v, avail, sums[: c + 1])
            prefix_best(K, p, avail, best)
            full = scale * slack[w]
            best_pattern(slack[w], c, scale, full, full, BRANCHES, v, p, avail, best, sums, pattern[w], pattern[w, 2 * c :])
            for q in range(c):
                avail[pattern[w, q]] -= 1
                slack[w] -= v[pattern[w, q]]
                tokens += v[pattern[w, q]]
    return tokens
