"""Decisions that admit everybody: the tokens admitted are given, so only the heaviest load M is left to be minimised.

Whether everybody fits below M is asked for one M after the other, by bisection. The question is answered by depth-first
search: largest request first, each tried on the lightest worker that can hold it, then on the next one; of workers
alike in load and free slots one is tried. The first path is longest-first (LPT). A large request that fits nowhere
turns the search back at once, so most answers, "no" as well as "yes", take microseconds. In between lie the M that the
nodes do not suffice for; they stay open, and the best placement is evened out by moves and exchanges.

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
def relieve(now: Ints, room: Ints, sizes: Ints, where: Ints) -> None:
    """Take requests from the heaviest worker, or exchange them, as long as that lowers the heavier of the two workers.

    now (G,) tokens, room (G,) slots and where (N,) belong together and are changed in place.
    """
    N = sizes.size
    while True:
        h = now.argmax()
        least, out, back, to = now[h], -1, -1, -1
        for j in range(N):
            if where[j] != h:
                continue
            for g in range(now.size):
                if g != h and room[g] > 0:
                    after = max(now[h] - sizes[j], now[g] + sizes[j])
                    if after < least:
                        least, out, back, to = after, j, -1, g
            for i in range(N):
                g = where[i]
                if g != h and sizes[i] < sizes[j]:
                    after = max(now[h] - sizes[j] + sizes[i], now[g] + sizes[j] - sizes[i])
                    if after < least:
                        least, out, back, to = after, j, i, g
        if out < 0:
            return
        moved = sizes[out]
        where[out] = to
        if back >= 0:
            moved -= sizes[back]
            where[back] = h
        else:
            room[h] += 1
            room[to] -= 1
        now[h] -= moved
        now[to] += moved


@kernel
def least_envelope(low: int, loads: Ints, slots: Ints, sizes: Ints, nodes: int, where: Ints) -> int:
    """Return the least M that is not known to be impossible; where[N] is the least M reached, where[:N] how.

    No M below `low` is possible. where[:N] comes with a placement to begin with.
    """
    N = sizes.size
    now, room, trial = loads.copy(), slots.copy(), where.copy()
    for j in range(N):
        now[where[j]] += sizes[j]
    possible, reached, ask = low, max(low, now.max()), low
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
    if possible < reached:
        now[:], room[:] = loads, slots
        for j in range(N):
            now[where[j]] += sizes[j]
            room[where[j]] -= 1
        relieve(now, room, sizes, where[:N])
        reached = max(low, now.max())
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
