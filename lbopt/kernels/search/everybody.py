"""Decisions that admit everybody: the tokens admitted are given, so only the heaviest load M is left to be minimised.

Whether everybody fits below M is asked for one M after the other, by bisection. The question is answered by depth-first
search: largest request first, each tried on the lightest worker that can hold it, then on the next one; of workers
alike in load and free slots one is tried. The first path is longest-first (LPT). A large request that fits nowhere
turns the search back at once, so most answers, "no" as well as "yes", take microseconds. In between lie the M that the
nodes do not suffice for; they stay open.

Source: branch and bound for P||Cmax, e.g. Dell'Amico and Martello, ORSA J. Computing 7 (1995), here with given loads
and limited slots.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

IMPOSSIBLE, FOUND, UNKNOWN = 0, 1, -1


@kernel
def fits_below(M: int, now: Ints, room: Ints, sizes: Ints, nodes: int, where: Ints) -> int:
    """Place requests of the given sizes (descending) so that no load exceeds M; where[j] is the worker of request j.

    now (G,) tokens and room (G,) slots are changed in place. Gives up after `nodes` placements.
    """
    G, N = now.size, sizes.size
    if N == 0:
        return FOUND
    j = 0
    where[0] = -1
    while True:
        size, tried = sizes[j], where[j]
        if tried >= 0:
            now[tried] -= size
            room[tried] += 1
        best = -1
        for g in range(G):
            if room[g] == 0 or now[g] + size > M or (best >= 0 and now[g] >= now[best]):
                continue
            if tried >= 0 and now[g] < now[tried]:
                continue
            if tried >= 0 and now[g] == now[tried] and (g <= tried or room[g] == room[tried]):
                continue
            best = g
        if best < 0:
            j -= 1
            if j < 0:
                return IMPOSSIBLE
            continue
        if nodes == 0:
            return UNKNOWN
        nodes -= 1
        now[best] += size
        room[best] -= 1
        where[j] = best
        j += 1
        if j == N:
            return FOUND
        where[j] = -1


@kernel
def least_envelope(low: int, high: int, loads: Ints, slots: Ints, sizes: Ints, nodes: int, where: Ints) -> int:
    """Return the least M that is not known to be impossible; where[N] is the least M reached, where[:N] how.

    No M below `low` is possible and `high` is reached; where[:N] is left alone if nothing below `high` is found.
    """
    N = sizes.size
    now, room, trial = loads.copy(), slots.copy(), where.copy()
    possible, reached, ask = low, high, low
    while ask < reached:
        M = (ask + reached) // 2
        now[:], room[:] = loads, slots
        answer = fits_below(M, now, room, sizes, nodes, trial)
        if answer == FOUND:
            reached = max(low, now.max())
            where[:N] = trial[:N]
        else:
            ask = M + 1  # also where that stayed open: what is out of reach now will be out of reach below
            if answer == IMPOSSIBLE:
                possible = M + 1
    where[N] = reached
    open_at = reached
    while possible < open_at:  # the largest M that is impossible lies below what stayed open
        M = (possible + open_at) // 2
        now[:], room[:] = loads, slots
        if fits_below(M, now, room, sizes, nodes, trial) == IMPOSSIBLE:
            possible = M + 1
        else:
            open_at = M
    return possible
