"""An assignment beneath given envelopes: no worker above its margin, as many tokens as possible.

At fixed envelopes the cost falls by T for every token admitted. Workers with fewest slots come first, then those with
the tightest margin; then rounds follow in which one slot of every worker is opened and all are refilled at once: an
open slot holds what was in it plus what is free up to the margin, such limits are nested, so in ascending order of the
limits each slot takes the largest request left that fits, which never loses tokens.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.draw import following
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.windows.placing import fill_near
from lbopt.kernels.windows.state import Draft, Pool, Profile, Scratch


@kernel
def margins(profile: Profile, envelope: Floats, margin: Ints) -> None:
    """Set margin[w] to the largest total of worker w that raises no envelope[h], whole tokens."""
    W, T = profile.peak.shape
    for w in range(W):
        least = np.inf
        for h in range(T):
            least = min(least, envelope[h] - profile.peak[w, h])
        margin[w] = int(least + 1e-4) if least > 0 else 0


@kernel
def fill_beneath(pool: Pool, slots: Ints, order: Ints, draft: Draft, rounds: int, scratch: Scratch) -> bool:
    """Fill draft.pattern beneath the margins in draft.goal; False where a forced request is left over.

    Parameters
    ----------
    order
        (W,) int64, workers with fewest slots first.
    """
    v, left, pattern, placed, goal = pool.v, draft.left, draft.pattern, draft.placed, draft.goal
    W, K = slots.size, v.size
    opened, link, head, turn = scratch.opened, scratch.link, scratch.head, scratch.turn
    for i in range(W):  # fewest slots first, then the tightest margin
        w = order[i]
        at = i
        while at > 0 and slots[turn[at - 1]] == slots[w] and goal[turn[at - 1]] > goal[w]:
            turn[at] = turn[at - 1]
            at -= 1
        turn[at] = w
    if not fill_near(pool, slots, turn, draft, True, scratch):
        return False
    state = 12345
    for _ in range(rounds):
        for k in range(K):
            head[k] = -1
        for w in range(W):
            state = following(state)
            q = state % slots[w]
            k = pattern[w, q]
            limit = last_fitting(v, goal[w] - placed[w] + v[k])
            if limit < k or left[k] + 1 > pool.n[k] - pool.must[k]:
                continue  # above its margin, or a request that has to stay
            left[k] += 1
            placed[w] -= v[k]
            opened[w] = q
            link[w] = head[limit]
            head[limit] = w
        for limit in range(K):
            w = head[limit]
            k = limit
            while w >= 0:
                while left[k] == 0:  # ends: every slot could have its own request back
                    k -= 1
                pattern[w, opened[w]] = k
                left[k] -= 1
                placed[w] += v[k]
                w = link[w]
    return True
