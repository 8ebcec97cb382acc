"""Decisions that admit everybody: the tokens admitted are given, so only the heaviest load M is left to be minimised.

Whether everybody fits below M is asked for one M after the other, by bisection. The question is answered by depth-first
search: largest request first, each tried on the lightest worker that can hold it, then on the next one; of workers
alike in load and free slots one is tried. The first path is longest-first (LPT). A large request that fits nowhere
turns the search back at once, so most answers, "no" as well as "yes", take microseconds. In between lie the M that the
nodes do not suffice for; they stay open, and the best placement is evened out by exchanges.

Source: branch and bound for P||Cmax, e.g. Dell'Amico and Martello, ORSA J. Computing 7 (1995), here with given loads
and limited slots.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

IMPOSSIBLE, FOUND, UNKNOWN = 0, 1, -1

#: Workers that hold at most so many of the requests exchange them in pairs.
PAIRED = 12

#: New starts of the evening out, for small fleets.
KICKS = 3_000


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
    """Exchange requests of the heaviest worker with another as long as that lowers the heavier of the two.

    One or two requests go, none to two come back; only one on workers of many. now (G,) tokens, room (G,) slots and
    where (N,) belong together and are changed in place.
    """
    mine, theirs, best = np.zeros_like(where), np.zeros_like(where), np.zeros(4, dtype=np.int64)
    while True:
        h = int(now.argmax())
        count = _held_by(h, where, mine)
        least, to = now[h], -1
        for g in range(now.size):
            others = _held_by(g, where, theirs)
            pairs = count <= PAIRED and others <= PAIRED
            for a in range(count if g != h else 0):
                for c in range(a, count if pairs else a + 1):
                    out = sizes[mine[a]] + (sizes[mine[c]] if c > a else 0)
                    for b in range(-1, others):
                        for d in range(b, others if pairs and b >= 0 else b + 1):
                            back = (sizes[theirs[b]] if b >= 0 else 0) + (sizes[theirs[d]] if d > b else 0)
                            more = 1 + (c > a) - (b >= 0) - (d > b)  # requests that g holds more
                            after = max(now[h] - out + back, now[g] + out - back)
                            if after < least and more <= room[g] and -more <= room[h]:
                                least, to = after, g
                                best[0], best[1] = mine[a], mine[c]
                                best[2] = theirs[b] if b >= 0 else -1
                                best[3] = theirs[d] if b >= 0 else -1
        if to < 0:
            return
        for j in range(4):
            i = best[j]
            goal = to if j < 2 else h
            if i >= 0 and where[i] != goal:
                now[where[i]] -= sizes[i]
                room[where[i]] += 1
                now[goal] += sizes[i]
                room[goal] -= 1
                where[i] = goal


@kernel
def _held_by(worker: int, where: Ints, held: Ints) -> int:
    """Fill `held` with the requests of a worker; return their number."""
    count = 0
    for j in range(where.size):
        if where[j] == worker:
            held[count] = j
            count += 1
    return count


@kernel
def even_out(low: int, loads: Ints, slots: Ints, sizes: Ints, where: Ints) -> int:
    """Improve the placement where (N,) in place; return its heaviest load.

    `relieve` from it, then again and again from the best one with four requests exchanged at random, until `low` is
    reached or the patience is spent. The random numbers are those of a small generator (MINSTD).
    """
    N = sizes.size
    now, room, trial = loads.copy(), slots.copy(), where.copy()
    reached, state = 1 << 62, 12345
    for turn in range(1 + min(KICKS, 3_000_000 // (N * loads.size))):
        trial[:] = where
        for _ in range(2 if turn > 0 else 0):
            state = state * 48271 % 2147483647
            i = state % N
            state = state * 48271 % 2147483647
            j = state % N
            trial[i], trial[j] = trial[j], trial[i]
        now[:], room[:] = loads, slots
        for j in range(N):
            now[trial[j]] += sizes[j]
            room[trial[j]] -= 1
        relieve(now, room, sizes, trial)
        if now.max() <= reached:
            reached = now.max()
            where[:] = trial
        if reached <= low:
            break
    return reached


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
        reached = max(low, even_out(low, loads, slots, sizes, where[:N]))
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
