"""The assignment that a node's master program is, once no worker of several slots holds a request in part."""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.search.keeping import improve
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.search.placed import whole_pattern
from lbopt.kernels.search.placement import WHOLE
from lbopt.kernels.search.state import Master, Search, Step, Tree


@kernel
def take_whole(step: Step, search: Search, m: Master, tree: Tree, M: int) -> int:
    """Offer the assignment that a master without fractions is; workers with one slot left are matched anew.

    Returns the tokens that it admits, -1 where it turns out to be none.

    Their limits are nested, so a matching is optimal in which the tightest comes first and takes the largest request
    that fits it.

    Parameters
    ----------
    step, search, m, tree
        The decision; the state of the search, the master program and the tree, which change in place.
    M
        Envelope, tokens.
    """
    left, spare = step.n.copy(), search.spare
    served = np.zeros(step.load.size, dtype=np.bool_)
    tokens = 0
    for b in range(m.counts.tight):
        j = m.basic[b]
        w = m.owner[j]
        single = step.slots[w] - tree.placed[w] == 1 and step.forced == 0
        if m.level[b] > WHOLE and not served[w] and not single:
            served[w] = True
            tokens += m.size[j]
            for q in range(step.slots[w]):
                spare[w, q] = m.items[j, q]
                left[spare[w, q]] -= 1
    singles, size = np.zeros(step.load.size, dtype=np.int64), 0
    for r in range(tree.state.workers):
        if tree.slots[r] > 1 or step.forced > 0:
            break
        at = size
        while at > 0 and tree.load[singles[at - 1]] < tree.load[r]:
            singles[at] = singles[at - 1]
            at -= 1
        singles[at] = r
        size += 1
        for q in range(tree.placed[tree.who[r]]):
            left[tree.taken[tree.who[r], q]] -= 1
    choice = np.zeros(1, dtype=np.int64)
    for i in range(size):
        r = singles[i]
        w = tree.who[r]
        k = last_fitting(step.v, M - tree.load[r])
        while k >= 0 and left[k] <= 0:
            k -= 1
        if k < 0:
            return -1
        left[k] -= 1
        choice[0] = k
        whole_pattern(tree, w, choice, 1, spare[w])
        served[w] = True
        tokens += tree.load[r] - step.load[w] + step.v[k]
    for w in range(step.load.size):
        if not served[w]:
            return -1
    if left.min() < 0:
        return -1
    improve(step, search, spare, M, tokens, 20)
    return tokens
