"""How a tree goes on at a node: which class of requests to place next, and what each way to place one of them costs.

Where the master program is fractional, some class is: what a worker holds of it, summed over its patterns, is no whole
number. At given prices, worker w with one request of class k is worth at most

    (profit of k) + (best of one slot fewer in a margin that is smaller by v_k),

so what is lost against its best pattern is known for all workers from one evaluation, and that none takes what is left
of k loses its prices. What loses more than the target allows needs no node.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.path import what_is_left
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import NONE, QUICK, Master, Path, Search, Step, Tree, part

#: Classes whose placement is tried out before the one with fewest ways is taken.
CANDIDATES = 6

#: A sum of levels this near to a whole number is one; so small a level is none.
WHOLE = 1e-4

_NO_WAY = 1 << 60


@kernel
def fractional_classes(m: Master, step: Step, path: Path, classes: Ints) -> int:
    """Write the classes that some worker holds in part to `classes`, largest first; return how many.

    Workers with one slot left do not count, unless requests are forced: once the others are whole, serving them is a
    matching, which loses nothing. Neither does a class of which nothing is left: rounding can make it look split, and
    it cannot be placed again. -1 where the optimum leaves a worker unserved.
    """
    W, K = step.slots.size, step.v.size
    items, level, basic, owner = m.items, m.level, m.basic, m.owner
    head, link = np.full(W, -1), np.full(m.counts.tight, -1)
    for b in range(m.counts.tight):
        if level[b] > WHOLE and m.value[basic[b]] < 0.0:
            return -1
        if level[b] > 0.0:  # many levels that are nearly nothing add up
            link[b] = head[owner[basic[b]]]
            head[owner[basic[b]]] = b
    part, split = np.zeros(K), np.zeros(K, dtype=np.int64)
    for w in range(W):
        if step.slots[w] - path.placed[w] <= 1 and step.forced == 0:
            continue
        for sweep in range(3):  # add up, compare, clear
            b = head[w]
            while b >= 0:
                for q in range(items.shape[1]):
                    k = items[basic[b], q]
                    if k < 0:
                        break
                    if sweep == 0:
                        part[k] += level[b]
                    elif sweep == 1:
                        if abs(part[k] - np.round(part[k])) > WHOLE:
                            split[k] = 1
                    else:
                        part[k] = 0.0
                b = link[b]
    count = 0
    for k in range(K - 1, -1, -1):
        if split[k] == 1 and path.left[k] > 0:
            classes[count] = k
            count += 1
    return count


@kernel
def parts(m: Master, k: int, part: Floats) -> None:
    """Set part[w] to how many requests of class k the master's optimum gives to worker w."""
    items, level, basic, owner = m.items, m.level, m.basic, m.owner
    for w in range(part.size):
        part[w] = 0.0
    for b in range(m.counts.tight):
        for q in range(items.shape[1]):
            if items[basic[b], q] < 0:
                break
            if items[basic[b], q] == k:
                part[owner[basic[b]]] += level[b]


@kernel
def losses(step: Step, search: Search, tree: Tree, M: int, k: int, lost: Ints) -> int:
    """Set lost[r] to what is lost at least where worker r of those left takes one of class k, and return what is lost
    where none takes any of it that is left.

    Takes search.price, and in tree.bound the bounds of the workers at these prices; `search.bound` and its like are
    overwritten.
    """
    v, sums, scale, path = step.v, search.path.sums, step.scale, search.path
    size = path.state.workers
    profit = scale * v[k] - search.price[k]
    fewer = 0
    for r in range(size):
        lost[r] = _NO_WAY
        room = M - path.load[r] - v[k]
        if path.slots[r] == 1 and room >= 0:
            lost[r] = tree.bound[r] - profit
        elif path.slots[r] > 1 and room >= sums[path.slots[r] - 1]:
            tree.load_then[fewer] = path.load[r] + v[k]
            tree.slots_then[fewer] = path.slots[r] - 1
            path.number[fewer] = r
            fewer += 1
    if fewer > 0:
        rest = what_is_left(step, path)
        load, slots = tree.load_then[:fewer], tree.slots_then[:fewer]
        then = part(step, rest.n, load, slots, rest.rank, rest.sums)
        # With one of class k still there everything fits that fits without it, so no bound is too low.
        if evaluate(then, search, M, QUICK) != NONE:
            for i in range(fewer):
                r = path.number[i]
                lost[r] = tree.bound[r] - profit - search.bound[i]
        else:
            for i in range(fewer):
                lost[path.number[i]] = 0
    return path.left[k] * search.price[k] if step.floor[k] == 0 else _NO_WAY
