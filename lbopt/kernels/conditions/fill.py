"""Whole decisions: workers take the best of what is left at given prices, and then improve on it one by one.

Workers with few slots come first. Patterns of which the restricted program holds more than half may come before all.
Then each worker in turn gives up what it has and takes the best pattern of what is left, prices aside, until no worker
changes. What is best is offered as the decision.

An even start shares room out by need and uses its slack up; it is tried before a master program. Where workers fill
several slots, a master program takes a tenth of a second, and its decisions are a mixture. Serving the largest need
first (`fill_evenly`) and handing slack on (`handing`) takes milliseconds, and is often as good as what the bound
permits.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.bounds import worker_best
from lbopt.kernels.conditions.handing import hand_slack
from lbopt.kernels.conditions.state import FORBIDDEN, NONE, Search, Step, book
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


#: Looks of each worker at a time, as long as a quarter of what is missing is found in it, and at last.
_LOOKS, _LAST_LOOKS = 3, 20


@kernel
def try_even_start(step: Step, s: Search, first: int, M: int, bound: int) -> None:
    """Offer an even decision at envelope M, improved up to the value that `bound` allows from envelope `first` on."""
    target = step.workers * first - step.total - bound
    known, W = s.known, step.slots.size
    known.work += W
    if not fill_evenly(step, s, M):
        return
    missing = target - leaf_value(step, s)
    lacking = 2 * missing
    while missing > 0 and 4 * missing <= 3 * lacking and not used_up(known):
        lacking = missing
        missing -= hand_slack(step, s, missing, _LOOKS * W)
    if 0 < missing < step.workers:
        hand_slack(step, s, missing, _LAST_LOOKS * W)
    offer(step, s)


@kernel
def leaf_value(step: Step, s: Search) -> int:
    """Return the value of the decision in s.leaf and s.leaf_mode."""
    total = 0
    for w in range(step.slots.size):
        total += step.mode_value[s.leaf_mode[w]]
        for i in range(step.slots[w]):
            total += step.value[w, s.leaf[w, i]]
    return total


@kernel
def fill_evenly(step: Step, s: Search, M: int) -> bool:
    """Fill s.leaf and s.leaf_mode at envelope M; False where a slot can take nothing that is left,
    or a limit of the solve is reached.
    """
    W, K, avail, spare, filled, light = step.slots.size, step.copies.size, s.avail, s.spare, s.filled, s.light
    need = step.need
    avail[:K] = step.copies
    filled[:W] = 0
    total = 0
    for w in range(W):
        if not _choose_mode(step, s, M, w):
            return False
        total += step.slots[w]
    placed = _place_forced(step, s)
    if placed < 0:
        return False
    for _ in range(total - placed):
        book(s, W + K)
        if used_up(s.known):
            return False
        u, most = -1, 0
        for w in range(W):
            rest = step.slots[w] - filled[w]
            if rest > 0 and (u < 0 or spare[0, w] // rest > most):
                u, most = w, spare[0, w] // rest
        rest = step.slots[u] - filled[u]
        ahead = rest - 1
        room = spare[0, u] - ahead * light[0, u]
        one, two = spare[1, u] - ahead * light[1, u], spare[2, u] - ahead * light[2, u]
        choice, nearest, shared = -1, FORBIDDEN, False
        for k in range(K):
            if avail[k] > 0 and step.work[u, k] <= room and need[0, k] <= one and need[1, k] <= two:
                # one that takes no more than its share of the resources comes before all that take more
                fair = need[0, k] * rest <= spare[1, u] and need[1, k] * rest <= spare[2, u]
                off = abs(step.work[u, k] - most)
                if (fair and not shared) or (fair == shared and off < nearest):
                    choice, nearest, shared = k, off, fair
        if choice < 0:
            return False
        _give(step, s, u, choice)
    return True


@kernel
def _give(step: Step, s: Search, w: int, k: int) -> None:
    """Give worker w one of class k."""
    spare, need = s.spare, step.need
    s.avail[k] -= 1
    s.leaf[w, s.filled[w]] = k
    s.filled[w] += 1
    spare[0, w] -= step.work[w, k]
    spare[1, w] -= need[0, k]
    spare[2, w] -= need[1, k]


@kernel
def _place_forced(step: Step, s: Search) -> int:
    """Place what must be admitted, each request where most room a slot is left; return how many, -1 where one cannot.

    Blanks that must be placed go where least is left.
    """
    placed, filled, spare, light, need, K = 0, s.filled, s.spare, s.light, step.need, step.copies.size
    for k in range(K):
        while step.floor[k] < 0 and s.avail[k] > 0:
            book(s, step.slots.size)
            u, most = -1, 0
            for w in range(step.slots.size):
                rest = step.slots[w] - filled[w]
                if rest > 0 and step.work[w, k] <= spare[0, w] - (rest - 1) * light[0, w]:
                    share = spare[0, w] // rest if k < K - 1 else -(spare[0, w] // rest)
                    if need[0, k] <= spare[1, w] and need[1, k] <= spare[2, w] and (u < 0 or share > most):
                        u, most = w, share
            if u < 0:
                return -1
            _give(step, s, u, k)
            placed += 1
    return placed


@kernel
def _choose_mode(step: Step, s: Search, M: int, w: int) -> bool:
    """Set room and least loads of worker w, in its first mode whose margin has room for the least; False for none."""
    light, spare, need, room, q = s.light, s.spare, step.need, step.room, step.slots[w]
    light[0, w] = light[1, w] = light[2, w] = FORBIDDEN
    for k in range(step.copies.size):
        if step.copies[k] > 0 and step.work[w, k] < FORBIDDEN:
            light[0, w] = min(light[0, w], step.work[w, k])
            light[1, w] = min(light[1, w], need[0, k])
            light[2, w] = min(light[2, w], need[1, k])
    if q == 0:
        light[0, w] = light[1, w] = light[2, w] = 0
    for mode in range(step.mode_first[w], step.mode_first[w + 1]):
        margin = M - step.load[w] + step.mode_cut[mode]
        if margin >= 0 and light[0, w] <= margin // max(1, q):
            s.leaf_mode[w] = mode
            spare[0, w], spare[1, w], spare[2, w] = margin, room[0, w], room[1, w]
            return True
    return False
