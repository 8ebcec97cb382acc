"""Placements that are taken for granted, and what they leave of a decision: a decision of the same kind.

A *placement* says where one request of a class goes: to worker w, whose load and slots change by it, or that all of the
class that is left keeps waiting. A path of placements leads to a smaller `Step`, which everything that prices, fills
and bounds serves unchanged; its workers are renumbered, because they have to ascend in slots.

The master program keeps the numbers and rows of the whole decision. There a placement shows in the values of columns
alone: what does not agree with it is driven out like a column that does not fit the envelope, so one basis serves all
envelopes, nodes and dives.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.master import add_column
from lbopt.kernels.search.pattern import smallest_sums
from lbopt.kernels.search.state import WAITS, Master, Path, Step, Tree, part

_WAITING = 1 << 40


@kernel
def clear_path(step: Step, path: Path) -> None:
    """Let nothing be placed."""
    path.left[: step.v.size] = step.n
    path.placed[: step.load.size] = 0


@kernel
def put(path: Path, k: int, w: int) -> None:
    """Place one of class k on worker w."""
    path.left[k] -= 1
    path.taken[w, path.placed[w]] = k
    path.placed[w] += 1


@kernel
def follow(step: Step, path: Path, tree: Tree, j: int) -> None:
    """Make the path to node j of the tree the path in use."""
    clear_path(step, path)
    while j >= 0:
        here = tree.nodes[j]
        if here.place == WAITS:
            path.left[here.size_class] -= _WAITING
        elif here.place >= 0:
            put(path, here.size_class, here.place)
        j = here.parent
    for k in range(step.v.size):
        path.left[k] = max(path.left[k], 0)
    leave(step, path)


@kernel
def leave(step: Step, path: Path) -> None:
    """Set what the placements of the path leave: workers in the order of slots and of filling, and sums."""
    v, slots = step.v, step.slots
    W = slots.size
    size = tokens = 0
    for w in range(W):
        rest = slots[w] - path.placed[w]
        for q in range(path.placed[w]):
            tokens += v[path.taken[w, q]]
        if rest > 0:  # sorted by insertion: few workers have changed
            at = size
            while at > 0 and path.slots[at - 1] > rest:
                path.slots[at], path.who[at] = path.slots[at - 1], path.who[at - 1]
                at -= 1
            path.slots[at], path.who[at] = rest, w
            size += 1
    for r in range(size):
        w = path.who[r]
        path.load[r] = step.load[w]
        for q in range(path.placed[w]):
            path.load[r] += v[path.taken[w, q]]
        path.number[w] = r
    at = 0
    for i in range(W):
        w = step.rank[i]
        if slots[w] > path.placed[w]:
            r = path.number[w]
            b = at
            while b > 0 and _before(path, r, path.rank[b - 1]):
                path.rank[b] = path.rank[b - 1]
                b -= 1
            path.rank[b] = r
            at += 1
    smallest_sums(v, path.left[: v.size], path.sums[: step.sums.size])
    path.state.workers, path.state.tokens = size, tokens


@kernel
def _before(path: Path, r: int, other: int) -> bool:
    """Whether worker r of what is left is filled before another: fewest slots first, then the heaviest."""
    if path.slots[r] != path.slots[other]:
        return path.slots[r] < path.slots[other]
    return path.load[r] > path.load[other]


@kernel
def what_is_left(step: Step, path: Path) -> Step:
    """Return the decision that the path leaves."""
    size = path.state.workers
    left, sums = path.left[: step.v.size], path.sums[: step.sums.size]
    return part(step, left, path.load[:size], path.slots[:size], path.rank[:size], sums)


@kernel
def whole_pattern(path: Path, w: int, rest: Ints, length: int, out: Ints) -> int:
    """Write what is placed on worker w and rest[:length] to `out`, largest class first; return how many they are."""
    size = 0
    for i in range(path.placed[w] + length):
        k = path.taken[w, i] if i < path.placed[w] else rest[i - path.placed[w]]
        at = size
        while at > 0 and out[at - 1] < k:
            out[at] = out[at - 1]
            at -= 1
        out[at] = k
        size += 1
    return size


@kernel
def compose(step: Step, path: Path, pattern: Ints, out: Ints) -> None:
    """Write the assignment of all workers to out[w, :slots[w]], from that of those that are left."""
    for w in range(step.slots.size):
        if path.placed[w] == step.slots[w]:
            whole_pattern(path, w, pattern[0], 0, out[w])
    for r in range(path.state.workers):
        whole_pattern(path, path.who[r], pattern[r], path.slots[r], out[path.who[r]])


@kernel
def add_whole(m: Master, step: Step, path: Path, w: int, rest: Ints, length: int, bonus: int) -> None:
    """Add what is placed on worker w and rest[:length] as a column; forced requests are worth `bonus` more."""
    j, size, worth = m.counts.columns, 0, 0
    if j >= m.owner.size:
        return
    row = m.items[j]
    c = whole_pattern(path, w, rest, length, row)
    for q in range(c):
        size += step.v[row[q]]
        worth += step.v[row[q]] + (bonus if step.floor[row[q]] < 0 else 0)
    add_column(m, w, row, c, size, float(worth))


@kernel
def value_columns(m: Master, step: Step, path: Path, M: int, bonus: int) -> None:
    """Let only columns count that fit envelope M and agree with the path; add what is placed where none does."""
    penalty = 2.0 * M + 1.0
    path.number[: step.load.size] = 0
    for j in range(m.counts.columns):
        w = m.owner[j]
        if j < m.counts.workers:
            m.value[j] = m.worth[j]
        elif m.size[j] <= M - step.load[w] and _agrees(m.items, j, step.slots[w], path, w):
            m.value[j] = m.worth[j]
            path.number[w] = 1
        else:
            m.value[j] = -penalty
    for w in range(step.load.size):
        if path.placed[w] == step.slots[w] and path.number[w] == 0:
            add_whole(m, step, path, w, path.taken[w], 0, bonus)


@kernel
def _agrees(items: Ints, j: int, c: int, path: Path, w: int) -> bool:
    """Whether column j holds what is placed on worker w, and beyond that only requests that are left."""
    for q in range(c):
        k = items[j, q]
        if path.left[k] >= c:
            continue
        copies = 0
        for r in range(c):
            if items[j, r] == k:
                copies += 1
        for r in range(path.placed[w]):
            if path.taken[w, r] == k:
                copies -= 1
        if copies > path.left[k]:
            return False
    for r in range(path.placed[w]):
        k = path.taken[w, r]
        copies = 0
        for q in range(c):
            if items[j, q] == k:
                copies += 1
        for q in range(path.placed[w]):
            if path.taken[w, q] == k:
                copies -= 1
        if copies < 0:
            return False
    return True
