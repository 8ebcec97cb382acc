"""What prices prove: an upper bound on the value of all patterns within an envelope, in exact integers.

By weak duality, for prices of any sign of the classes that must be admitted and of at least 0 of the others,

    value <= sum_k copies[k] price[k] + sum_w max over patterns of w of (value - prices of its requests) .

Prices are rounded to integers, so the right side is exact for any prices. After some placements the patterns of a
worker are those that contain what is placed on it, and no more of a class than it may take.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.pattern import best_pattern
from lbopt.kernels.conditions.state import NO_BOUND, NONE, Path, Search, Step
from lbopt.kernels.deadline import used_up


@kernel
def worker_best(
    step: Step, s: Search, w: int, M: int, extra: int, avail: Ints, price: Ints, least: int
) -> tuple[int, int]:
    """Return what no profit of worker w exceeds at envelope M, and that of the pattern written to s.pattern[w].

    The second is NONE where nothing of more profit than `least` was found; the first may then be less than `least`.
    `extra` is a class one of which it takes besides what is placed on it, -1 for none; `avail` are the requests that
    there are, without those placed and `extra`. The mode is written to s.mode[w].
    """
    path, scale, rooms = s.path, step.scale, s.rooms
    placed = path.placed[w]
    own, used, q = path.worth[w] * scale, path.used[w], step.slots[w] - placed
    for r in range(2):
        rooms[r] = step.room[r, w] - path.held[r, w]
    for i in range(placed):
        own -= price[path.taken[w, i]]
    if extra >= 0:
        own += step.value[w, extra] * scale - price[extra]
        used += step.work[w, extra]
        q -= 1
        for r in range(2):
            rooms[r] -= step.need[r, extra]
    if q < 0 or rooms[0] < 0 or rooms[1] < 0:
        return NONE, NONE
    bound, found = NONE, NONE
    for mode in range(step.mode_first[w], step.mode_first[w + 1]):
        margin = M - step.load[w] - used + step.mode_cut[mode]
        if margin < 0:
            continue
        base = own + step.mode_value[mode] * scale
        known = max(found, least)
        top, profit = best_pattern(step, s, w, q, margin, avail, price, known - base if known > NONE else NONE)
        if top > NONE:
            bound = max(bound, base + top)
        if profit > NONE and base + profit > known:
            found = base + profit
            c = 0
            for i in range(placed):
                s.pattern[w, c] = path.taken[w, i]
                c += 1
            if extra >= 0:
                s.pattern[w, c] = extra
                c += 1
            for i in range(q):
                s.pattern[w, c] = s.chosen[i]
                c += 1
            s.mode[w] = mode
    return bound, found


@kernel
def evaluate(step: Step, s: Search, M: int, price: Ints) -> int:
    """Return the bound on scale * value that prices prove at envelope M along the path; NONE where nothing fits.

    NO_BOUND where a limit of the solve is reached first.

    Leaves the best patterns in s.pattern and s.mode, what no profit exceeds in s.bound, and the best profits known in
    s.value. Patterns of no more profit than s.least are not looked for: their rows begin with -2.
    """
    total, pattern = 0, s.pattern
    for k in range(price.size):
        total += step.copies[k] * price[k]
    for w in range(step.slots.size):
        if used_up(s.known):
            return NO_BOUND
        least = s.least[w]
        bound, found = worker_best(step, s, w, M, -1, s.path.left, price, least)
        bound = max(bound, least)
        if found == NONE:
            pattern[w, 0] = -2
        s.bound[w], s.value[w] = bound, max(found, least)
        if bound == NONE:
            return NONE
        total += bound
    return total


@kernel
def clear_path(step: Step, path: Path) -> None:
    """Let nothing be placed."""
    path.placed[:] = 0
    path.used[:] = 0
    path.worth[:] = 0
    path.held[:] = 0
    path.left[:] = step.copies
    path.banned[:] = 0


@kernel
def place(step: Step, path: Path, k: int, w: int) -> None:
    """Place one of class k on worker w."""
    path.taken[w, path.placed[w]] = k
    path.placed[w] += 1
    path.used[w] += step.work[w, k]
    path.worth[w] += step.value[w, k]
    path.left[k] -= 1
    for r in range(2):
        path.held[r, w] += step.need[r, k]


@kernel
def lift(step: Step, path: Path, k: int, w: int) -> None:
    """Undo `place`; the placement undone is the last one on worker w."""
    path.left[k] += 1
    path.placed[w] -= 1
    path.used[w] -= step.work[w, k]
    path.worth[w] -= step.value[w, k]
    for r in range(2):
        path.held[r, w] -= step.need[r, k]


@kernel
def ban(path: Path, k: int, w: int) -> None:
    """Let worker w take no more of class k."""
    path.banned[w, k] = 1


@kernel
def unban(path: Path, k: int, w: int) -> None:
    """Undo `ban`."""
    path.banned[w, k] = 0
