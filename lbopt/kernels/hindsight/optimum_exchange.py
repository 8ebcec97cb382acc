"""Simulated annealing on a timetable: slots of two workers exchange what they run, from a step on or for a while.

A placement is kept as chains: each slot runs its requests one after the other. At a step in which neither of two slots
is in the middle of a request, everything they run from there on may change hands, and nothing else is disturbed; if
they are free together again later, they may change back there. In a full fleet both happen where requests start
together, above all in the first step; where slots are empty a single request moves. The cost is the sum over windows
of the largest tokens that a worker shows in the window (`lbopt.hindsight.windows`).

Metropolis' rule with geometric cooling (Kirkpatrick, Gelatt and Vecchi 1983, Optimization by Simulated Annealing).
"""

import math
from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.draw import draw

_CHANCES = 1 << 30
_MATES = 4  # of so many moves, all but one are with a request that starts in the same step
_LOOK = 256  # moves between two looks at the clock, and between two steps of the temperature


@by_reference
class Run(NamedTuple):
    """A timetable in windows: what the annealing reads."""

    tokens: Ints  # (N, C) tokens that a request shows in each window altogether
    first: Ints  # (N,) first window of a request
    last: Ints  # (N,) window after its last one
    start: Ints  # (N,) first step
    end: Ints  # (N,) step after the last one
    movable: Ints  # (.,) requests that can change hands in their first step: others start there too, or slots are free
    mate_from: Ints  # (N,) first request that starts in the same step
    mate_to: Ints  # (N,) the one after the last of these


@by_reference
class Chains(NamedTuple):
    """A placement as slots and what they run; changed in place."""

    slot: Ints  # (N,) slot of each request, worker times B plus a number below B
    head: Ints  # (G B,) first request of each slot, -1 for none
    follower: Ints  # (N,) next request of the same slot, -1 for none
    leader: Ints  # (N,) the one before it, -1 for none
    load: Ints  # (C, G) tokens of each worker
    peak: Ints  # (C,) the largest of them
    change: Ints  # (C,) scratch, zeros between moves
    best: Ints  # (N,) slots of the best placement so far


@kernel
def link(run: Run, chains: Chains, slots: int) -> int:
    """Make heads, followers, loads and peaks anew from `chains.slot`; return the cost.

    Parameters
    ----------
    run, chains
        As declared; `chains` is changed.
    slots
        B.
    """
    chains.head[:] = -1
    chains.follower[:] = -1
    chains.leader[:] = -1
    chains.load[:] = 0
    chains.change[:] = 0
    tail = np.full(chains.head.size, -1, np.int64)
    for i in range(chains.slot.size):
        p = chains.slot[i]
        if tail[p] < 0:
            chains.head[p] = i
        else:
            chains.follower[tail[p]] = i
            chains.leader[i] = tail[p]
        tail[p] = i
        for c in range(run.first[i], run.last[i]):
            chains.load[c, p // slots] += run.tokens[i, c]
    cost = 0
    for c in range(chains.peak.size):
        chains.peak[c] = chains.load[c].max()
        cost += chains.peak[c]
    return cost


@kernel
def _ending(run: Run, chains: Chains, i: int, j: int, for_a_while: bool) -> tuple[int, int]:
    """Return the requests with which the two slots change back, -1 for never: as soon as both are free together.

    Parameters
    ----------
    run
        The timetable.
    chains
        The placement.
    i, j
        First requests of the two pieces; j is -1 for none.
    for_a_while
        Whether they change back at all.
    """
    if not for_a_while:
        return -1, -1
    a, busy_a, b, busy_b = chains.follower[i], run.end[i], j, run.start[i]
    while True:
        if b >= 0 and run.start[b] < busy_a:
            busy_b = run.end[b]
            b = chains.follower[b]
        elif a >= 0 and run.start[a] < busy_b:
            busy_a = run.end[a]
            a = chains.follower[a]
        else:
            return a, b


@kernel
def _add(run: Run, chains: Chains, i: int, until: int, sign: int) -> int:
    """Add the tokens of a piece of a chain to `chains.change`; return the window after its last one.

    Parameters
    ----------
    run
        The timetable.
    chains
        The placement; `change` is changed.
    i, until
        First request of the piece, and the one after it; -1 for none.
    sign
        1 or -1.
    """
    last = 0
    while i != until:
        for c in range(run.first[i], run.last[i]):
            chains.change[c] += sign * run.tokens[i, c]
        last = max(last, run.last[i])
        i = chains.follower[i]
    return last


@kernel
def _gain(chains: Chains, a: int, b: int, low: int, high: int) -> int:
    """Return by how much the cost grows if worker a gets `chains.change` more and worker b less.

    Parameters
    ----------
    chains
        The placement.
    a, b
        Workers.
    low, high
        First window, and the one after the last.
    """
    grown = 0
    workers = chains.load.shape[1]
    for c in range(low, high):
        x = chains.change[c]
        most = 0
        for g in range(workers):
            load = chains.load[c, g]
            if g == a:
                load += x
            elif g == b:
                load -= x
            most = max(most, load)
        grown += most - chains.peak[c]
    return grown


@kernel
def _commit(chains: Chains, a: int, b: int, low: int, high: int) -> None:
    """Give worker a what `chains.change` says, and worker b as much less.

    Parameters
    ----------
    chains
        The placement; loads and peaks are changed.
    a, b
        Workers.
    low, high
        First window, and the one after the last.
    """
    for c in range(low, high):
        chains.load[c, a] += chains.change[c]
        chains.load[c, b] -= chains.change[c]
        chains.peak[c] = chains.load[c].max()


@kernel
def _give(chains: Chains, slot: int, i: int, until: int) -> int:
    """Put a piece of a chain into a slot; return its last request, -1 for an empty piece.

    Parameters
    ----------
    chains
        The placement; `slot` is changed.
    slot
        The slot.
    i, until
        First request of the piece, and the one after it; -1 for none.
    """
    last = -1
    while i != until:
        chains.slot[i] = slot
        last = i
        i = chains.follower[i]
    return last


@kernel
def _join(chains: Chains, slot: int, before: int, after: int) -> None:
    """Let `after` follow `before` in a slot; -1 stands for its beginning and its end.

    Parameters
    ----------
    chains
        The placement; its links are changed.
    slot
        The slot.
    before, after
        Requests, or -1.
    """
    if before >= 0:
        chains.follower[before] = after
    else:
        chains.head[slot] = after
    if after >= 0:
        chains.leader[after] = before


@kernel
def _swap(chains: Chains, p: int, q: int, i: int, i_end: int, j: int, j_end: int, before_j: int) -> None:
    """Swap the pieces [i, i_end) of slot p and [j, j_end) of slot q.

    Parameters
    ----------
    chains
        The placement; slots and links are changed.
    p, q
        Slots.
    i, i_end, j, j_end
        First requests of the pieces, and those after them; -1 for none.
    before_j
        The request before j in slot q, -1 for none.
    """
    before_i = chains.leader[i]
    last_i, last_j = _give(chains, q, i, i_end), _give(chains, p, j, j_end)
    # What follows the pieces stays in its slot.
    if last_j >= 0:
        _join(chains, p, before_i, j)
        _join(chains, p, last_j, i_end)
    else:
        _join(chains, p, before_i, i_end)
    _join(chains, q, before_j, i)
    _join(chains, q, last_i, j_end)


@kernel
def anneal(
    run: Run, chains: Chains, slots: int, dice: Ints, moves: int, hot: float, cold: float, deadline: int
) -> tuple[int, int]:
    """Try `moves` exchanges while the temperature falls from `hot` to `cold`; return least cost and moves tried.

    Parameters
    ----------
    run
        The timetable.
    chains
        A placement that `link` has made ready; the last one at the end, the best one in `chains.best`.
    slots
        B.
    dice
        State of the random numbers, changed.
    moves
        Exchanges to try.
    hot, cold
        Temperatures in tokens, above 0.
    deadline
        Nanoseconds, as in `lbopt.kernels.deadline`.
    """
    all_slots = chains.head.size
    cost = chains.peak.sum()
    best = cost
    chains.best[:] = chains.slot
    cooling = (cold / hot) ** (_LOOK / moves)
    heat = hot
    for move in range(moves):
        if move % _LOOK == 0:
            if passed(deadline):
                return best, move
            heat *= cooling
        i = run.movable[draw(dice, run.movable.size)]
        p, t = chains.slot[i], run.start[i]
        # Mostly a slot in which another request starts then, since in a full fleet no other is between two requests.
        mates = run.mate_to[i] - run.mate_from[i]
        if draw(dice, _MATES) > 0 and mates > 1:
            q = chains.slot[run.mate_from[i] + draw(dice, mates)]
        else:
            q = draw(dice, all_slots)
        a, b = p // slots, q // slots
        if a == b:
            continue
        before, j = -1, chains.head[q]
        while j >= 0 and run.start[j] < t:
            before = j
            j = chains.follower[j]
        if before >= 0 and run.end[before] > t:
            continue
        i_end, j_end = _ending(run, chains, i, j, draw(dice, 2) == 0)
        low = run.first[i]
        high = max(_add(run, chains, i, i_end, -1), _add(run, chains, j, j_end, 1))
        grown = _gain(chains, a, b, low, high)
        if grown <= 0 or draw(dice, _CHANCES) < _CHANCES * math.exp(-grown / heat):
            _commit(chains, a, b, low, high)
            _swap(chains, p, q, i, i_end, j, j_end, before)
            cost += grown
            if cost < best:
                best = cost
                chains.best[:] = chains.slot
        chains.change[low:high] = 0
    return best, moves
