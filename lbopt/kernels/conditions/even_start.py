"""Decisions that share room out evenly and use their slack up: what to try before a master program.

Where workers fill several slots, a master program takes a tenth of a second, and its decisions are a mixture. Serving
the largest need first (`fill_evenly`) and handing slack on (`handing`) takes milliseconds, and is often as good as what
the bound permits.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.fill import offer
from lbopt.kernels.conditions.handing import hand_slack
from lbopt.kernels.conditions.state import FORBIDDEN, Search, Step, book
from lbopt.kernels.deadline import used_up

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
