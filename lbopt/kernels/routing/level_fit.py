"""auto: requests that fit the level to which all workers are to be filled, where waiting counts in their favour.

Where more requests wait than slots are free, U of n, the rule first says how high the workers will stand if the
requests that start are of mean size m, the mean of all that wait:

    T = (sum of loads + U m) / G                                                                        (tokens)

Then, U times, the lightest worker g with a free slot takes the request of least

    | s - gap |  -  weight m w / (1 + mean w),        gap = T - L_g - (free slots of g - 1) m / 2,

s being its tokens and w the steps that it has waited; equal ones go by age. A worker with several free slots leaves
half a mean request for each of the others. Deviations count alike on both sides of the level, and the level rises with
the sizes that wait: so large requests are not left over, as they are by rules that ask what fits below the heaviest
worker. What the wait counts grows without end, so every request starts some time.

Where all can start, n of them on U free slots, largest first each goes to the lightest worker that has taken less than
its share, ceil(n free slots of g / U). So light workers do not give all their slots to the first that come, which
matters where slots become known in bulk, with each report. Before either, requests that have waited `age_bound` steps
are placed, oldest first.

Source: lbopt; found on two traces and judged on others, see the manual, *One rule*.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.balance_route import rank_waiting
from lbopt.kernels.routing.max_min import lightest_open, place_overdue
from lbopt.kernels.routing.state import Room, Waiting


@kernel
def fit_to_level(parameters: Record, room: Room, waiting: Waiting, choice: Ints) -> int:
    """Run one scheduling round; returns positions filled (the whole pool)."""
    load, free, pool = room.load, room.free, waiting.pool
    n = pool.size
    choice[:n] = -1
    slots = free.sum() - place_overdue(parameters.age_bound, room, waiting, choice)

    size = np.empty(n, np.int64)
    left = np.empty(n, np.int64)  # positions that still wait
    rest, tokens = 0, 0
    for position in range(n):
        size[position] = waiting.prompt[pool[position]]
        if choice[position] < 0:
            left[rest] = position
            rest += 1
            tokens += size[position]
    if slots == 0 or rest == 0:
        return n
    if rest <= slots:
        _largest_first(rest, slots, load, free, size, choice)
        return n

    mean = tokens / rest
    held = 0
    for g in range(load.size):
        held += load[g]
    level = (held + slots * mean) / load.size
    favour = np.empty(rest, np.float64)
    waits = 0
    for r in range(rest):
        waited = waiting.step - waiting.reveal_step[pool[left[r]]]
        waits += waited
        favour[r] = waited
    favour *= parameters.age_thousandths / 1000 * mean / (1 + waits / rest)
    while slots > 0:
        g = lightest_open(load, free)
        gap = level - load[g] - (free[g] - 1) * mean / 2
        r = _best_fit(gap, size, left, favour, rest)
        position = left[r]
        choice[position] = g
        load[g] += size[position]
        free[g] -= 1
        slots -= 1
        rest -= 1
        for later in range(r, rest):
            left[later] = left[later + 1]
            favour[later] = favour[later + 1]
    return n


@kernel
def _largest_first(rest: int, slots: int, load: Ints, free: Ints, size: Ints, choice: Ints) -> None:
    """Place all that wait, largest first, each on the lightest worker that has not taken its share of them.

    Parameters
    ----------
    rest, slots
        How many wait, and free slots of all workers, as many at least.
    load, free
        int64 (G,), tokens and free slots of each worker; changed in place.
    size
        int64 (n,), tokens of each pool position.
    choice
        int64 (n,), the worker of each pool position, or -1; changed in place.
    """
    share = np.empty(free.size, np.int64)
    for g in range(free.size):
        share[g] = (rest * free[g] + slots - 1) // slots  # at most its free slots, and together at least all that wait
    ranked = np.empty(size.size, np.int64)
    ranked_size = np.empty(size.size, np.int64)
    rank_waiting(size, choice, ranked, ranked_size)
    for r in range(rest):
        g = lightest_open(load, share)
        choice[ranked[r]] = g
        load[g] += ranked_size[r]
        share[g] -= 1
        free[g] -= 1


@kernel
def _best_fit(gap: float, size: Ints, waiting: Ints, favour: Floats, rest: int) -> int:
    """Return which of the waiting requests deviates least from the gap, less what its wait counts; ties: the oldest.

    Parameters
    ----------
    gap
        Tokens.
    size
        int64 (n,), tokens of each pool position.
    waiting
        int64 (>= rest,), pool positions in order of revelation.
    favour
        float64 (>= rest,), tokens that the wait of each counts.
    """
    best, least = 0, 0.0
    for r in range(rest):
        cost = abs(size[waiting[r]] - gap) - favour[r]
        if r == 0 or cost < least:
            best, least = r, cost
    return best
