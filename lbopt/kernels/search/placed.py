"""What is left of a decision after some requests have been placed: a decision of the same kind.

A *placement* says where one request of a class goes: to worker w, whose load and slots change by it, or that all of the
class that is left keeps waiting. A path of placements leads to a smaller `Step`, which everything that prices, fills
and bounds serves unchanged; its workers are renumbered, because they have to ascend in slots.

The master program keeps the numbers and rows of the whole decision. There a placement shows in the values of columns
alone: what does not agree with it is driven out like a column that does not fit the envelope.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import smallest_sums
from lbopt.kernels.search.state import WAITS, Master, Step, Tree

_WAITING = 1 << 40


@kernel
def place(step: Step, tree: Tree, j: int) -> None:
    """Follow the path to node j of the tree: set what it leaves, how many workers, and the tokens placed."""
    v, load, slots, left = step.v, step.load, step.slots, tree.left
    W, K = load.size, v.size
    for k in range(K):
        left[k] = step.n[k]
    for w in range(W):
        tree.placed[w] = 0
    tokens = 0
    while j >= 0:
        here = tree.nodes[j]
        k, w = here.size_class, here.place
        if w == WAITS:
            left[k] -= _WAITING
        elif w >= 0:
            left[k] -= 1
            tree.taken[w, tree.placed[w]] = k
            tree.placed[w] += 1
            tokens += v[k]
        j = here.parent
    for k in range(K):
        left[k] = max(left[k], 0)
    size = 0
    for w in range(W):
        rest = slots[w] - tree.placed[w]
        if rest > 0:  # sorted by insertion: few workers have changed
            at = size
            while at > 0 and tree.slots[at - 1] > rest:
                tree.slots[at], tree.who[at] = tree.slots[at - 1], tree.who[at - 1]
                at -= 1
            tree.slots[at], tree.who[at] = rest, w
            size += 1
    for r in range(size):
        w = tree.who[r]
        tree.load[r] = load[w]
        for q in range(tree.placed[w]):
            tree.load[r] += v[tree.taken[w, q]]
        tree.number[w] = r
    at = 0
    for i in range(W):
        w = step.rank[i]
        if slots[w] > tree.placed[w]:
            r = tree.number[w]
            b = at
            while b > 0 and _before(tree, r, tree.rank[b - 1]):
                tree.rank[b] = tree.rank[b - 1]
                b -= 1
            tree.rank[b] = r
            at += 1
    smallest_sums(v, left, tree.sums[: step.sums.size])
    tree.state.workers, tree.state.tokens = size, tokens


@kernel
def _before(tree: Tree, r: int, other: int) -> bool:
    """Whether worker r of what is left is filled before another: fewest slots first, then the heaviest."""
    if tree.slots[r] != tree.slots[other]:
        return tree.slots[r] < tree.slots[other]
    return tree.load[r] > tree.load[other]


@kernel
def whole_pattern(tree: Tree, w: int, rest: Ints, length: int, out: Ints) -> int:
    """Write what is placed on worker w and rest[:length] to `out`, largest class first; return how many they are.

    Parameters
    ----------
    tree, w
        Tree, with the path that `place` set; worker.
    rest, length
        int64 (length,) at least: classes that the worker takes besides.
    out
        int64 (Q,) at least, written.
    """
    size = 0
    for i in range(tree.placed[w] + length):
        k = tree.taken[w, i] if i < tree.placed[w] else rest[i - tree.placed[w]]
        at = size
        while at > 0 and out[at - 1] < k:
            out[at] = out[at - 1]
            at -= 1
        out[at] = k
        size += 1
    return size


@kernel
def value_columns(m: Master, step: Step, tree: Tree, M: int, penalty: float) -> None:
    """Let only columns count that fit envelope M and agree with the path.

    tree.number[w] becomes 1 for workers with such a column, else 0.

    Parameters
    ----------
    m
        Master program; the values of its columns change in place.
    step, tree
        The decision; the tree, with the path that `place` set; tree.number is overwritten.
    M, penalty
        Envelope; tokens that a column costs which does not agree.
    """
    for w in range(step.load.size):
        tree.number[w] = 0
    for j in range(m.counts.columns):
        w = m.owner[j]
        if j < m.counts.artificial:
            m.value[j] = m.worth[j]
        elif m.size[j] <= M - step.load[w] and _agrees(m.items, j, step.slots[w], tree, w):
            m.value[j] = m.worth[j]
            tree.number[w] = 1
        else:
            m.value[j] = -penalty


@kernel
def _agrees(items: Ints, j: int, c: int, tree: Tree, w: int) -> bool:
    """Whether column j holds what is placed on worker w, and beyond that only requests that are left.

    Parameters
    ----------
    items, j, c
        int64 (C, Q): classes of each column; the column; slots of its worker.
    tree, w
        Tree, with the path that `place` set; worker.
    """
    for q in range(c):
        k = items[j, q]
        if tree.left[k] >= c:
            continue
        copies = 0
        for r in range(c):
            if items[j, r] == k:
                copies += 1
        for r in range(tree.placed[w]):
            if tree.taken[w, r] == k:
                copies -= 1
        if copies > tree.left[k]:
            return False
    for r in range(tree.placed[w]):
        k = tree.taken[w, r]
        copies = 0
        for q in range(c):
            if items[j, q] == k:
                copies += 1
        for q in range(tree.placed[w]):
            if tree.taken[w, q] == k:
                copies -= 1
        if copies < 0:
            return False
    return True
