"""Whole decisions: workers take the best of what is left at given prices, and then improve on it one by one.

Workers with few slots come first. Patterns of which the restricted program holds more than half may come before all.
Then each worker in turn gives up what it has and takes the best pattern of what is left, prices aside, until no worker
changes. What is best is offered as the decision.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.bounds import worker_best
from lbopt.kernels.conditions.state import NONE, Search, Step
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.state import Master

#: Most rounds of improvements.
_ROUNDS = 4

#: Share of a column that is taken first.
_MOST = 0.51


@kernel
def fill(step: Step, s: Search, m: Master, M: int, price: Ints, guided: bool) -> bool:
    """Build a decision within envelope M along the path, and offer it; return whether there is one."""
    W, K, avail = step.slots.size, step.copies.size, s.avail
    path = s.path
    avail[:K] = path.left
    for w in range(W):
        s.leaf_mode[w] = -1
    if guided:
        for b in range(m.counts.tight):
            j = m.basic[b]
            if m.level[b] > _MOST and j >= W and m.value[j] == m.worth[j]:
                _take_column(step, s, m, j)
    for position in range(W):
        w = step.order[position]
        if s.leaf_mode[w] >= 0:
            continue
        if used_up(s.known):
            return False
        _, found = worker_best(step, s, w, M, -1, avail, price, NONE)
        if found == NONE:
            return False
        _take(step, s, w)
        for i in range(path.placed[w], step.slots[w]):
            avail[s.leaf[w, i]] -= 1
    for k in range(K):
        if step.floor[k] < 0 and avail[k] > 0:
            return False
    _improve(step, s, M)
    offer(step, s)
    return True


@kernel
def _take(step: Step, s: Search, w: int) -> None:
    """Make the pattern found for worker w part of the decision in the making."""
    s.leaf[w, : step.slots[w]] = s.pattern[w, : step.slots[w]]
    s.leaf_mode[w] = s.mode[w]


@kernel
def _take_column(step: Step, s: Search, m: Master, j: int) -> None:
    """Give a worker column j of the restricted program, unless requests are lacking."""
    w, placed, avail = m.owner[j], s.path.placed, s.avail
    if s.leaf_mode[w] >= 0:
        return
    # What is placed on the worker is part of the column, and is not taken again.
    for i in range(step.slots[w]):
        avail[m.items[j, i]] -= 1
    for i in range(placed[w]):
        avail[s.path.taken[w, i]] += 1
    lacking = False
    for i in range(step.slots[w]):
        lacking = lacking or avail[m.items[j, i]] < 0
    load, value = 0, 0
    for i in range(step.slots[w]):
        load += step.work[w, m.items[j, i]]
        value += step.value[w, m.items[j, i]]
    choice = -1
    for mode in range(step.mode_first[w], step.mode_first[w + 1]):
        if load - step.mode_cut[mode] == m.size[j]:
            choice = mode
            break
    if lacking or choice < 0:
        for i in range(step.slots[w]):
            avail[m.items[j, i]] += 1
        for i in range(placed[w]):
            avail[s.path.taken[w, i]] -= 1
        return
    # What is placed comes first in a pattern.
    c = placed[w]
    for i in range(c):
        s.leaf[w, i] = s.path.taken[w, i]
    for i in range(step.slots[w]):
        k = m.items[j, i]
        own = 0
        for e in range(i + 1):
            own += 1 if m.items[j, e] == k else 0
        for e in range(placed[w]):
            own -= 1 if s.path.taken[w, e] == k else 0
        if own > 0:
            s.leaf[w, c] = k
            c += 1
    s.leaf_mode[w] = choice


@kernel
def _improve(step: Step, s: Search, M: int) -> None:
    """Let each worker exchange what it has for the best of what is left, until no worker changes."""
    path, avail, scale = s.path, s.avail, step.scale
    for _ in range(_ROUNDS):
        changed = False
        for w in range(step.slots.size):
            if used_up(s.known):
                return
            now = step.mode_value[s.leaf_mode[w]] * scale
            for i in range(step.slots[w]):
                now += step.value[w, s.leaf[w, i]] * scale - step.floor[s.leaf[w, i]]
            for i in range(path.placed[w], step.slots[w]):
                avail[s.leaf[w, i]] += 1
            _, found = worker_best(step, s, w, M, -1, avail, step.floor, NONE)
            if found > now:
                changed = True
                _take(step, s, w)
            for i in range(path.placed[w], step.slots[w]):
                avail[s.leaf[w, i]] -= 1
        if not changed:
            return


@kernel
def offer(step: Step, s: Search) -> None:
    """Keep the decision in s.leaf and s.leaf_mode where it costs less than the best one."""
    known, top, value = s.known, step.heaviest, 0
    for w in range(step.slots.size):
        mode = s.leaf_mode[w]
        load = step.load[w] - step.mode_cut[mode]
        value += step.mode_value[mode]
        for i in range(step.slots[w]):
            load += step.work[w, s.leaf[w, i]]
            value += step.value[w, s.leaf[w, i]]
        top = max(top, load)
    cost = step.workers * top - step.total - value
    if cost < known.cost:
        known.cost, known.found, known.own = cost, 1, 1
        W, Q = step.slots.size, s.leaf.shape[1]
        for w in range(W):
            s.answer_mode[w] = s.leaf_mode[w]
            for i in range(Q):
                s.answer[w, i] = s.leaf[w, i]
