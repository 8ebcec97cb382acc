"""A good placement to start from: each request where it costs least so far, then simulated annealing of slots.

The first placement looks at the whole life of a request: in the order of the starts, each goes to the worker with a
free slot where the sum of the barriers grows least. Annealing (`lbopt.kernels.hindsight.optimum_exchange`) starts from
it again and again with other random numbers, hot enough that the start does not matter, and ends when several runs in
a row found nothing better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.hindsight.halt import Halt
from lbopt.hindsight.timetable import Timetable
from lbopt.hindsight.windows import Windows
from lbopt.kernels.deadline import now
from lbopt.kernels.draw import new_dice
from lbopt.kernels.hindsight.optimum_exchange import Chains, Run, anneal, link

IntArray = NDArray[np.int64]

#: Exchanges of the first annealing; each that follows tries this much more.
MOVES = 100_000
_LONGER = 1.5
_MOST_MOVES = 20_000_000

#: Exchanges of the first annealing where much time is left.
LONG = 2_000_000

#: So many annealings in a row that find nothing better end the search.
PATIENCE = 4

#: Temperatures, in parts of the mean floor of a window: where all is accepted, and where hardly anything is.
_HOT, _COLD = 0.3, 1e-4


def greedy(timetable: Timetable, windows: Windows) -> IntArray:
    """Return a slot for each request, worker times B plus a number: by starts, where least is added."""
    workers, slots = timetable.num_workers, timetable.slots_per_worker
    load = np.zeros((workers, windows.floor.size), dtype=np.int64)
    free = np.zeros((workers, slots), dtype=np.int64)  # step from which each slot is free
    slot = np.zeros(timetable.num_requests, dtype=np.int64)
    for i, (start, end) in enumerate(zip(timetable.start.tolist(), timetable.end.tolist(), strict=True)):
        span = slice(int(windows.first[i]), int(windows.last[i]))
        peak = load[:, span].max(axis=0)
        grown = np.maximum(load[:, span] + windows.tokens[i, span] - peak, 0).sum(axis=1)
        usable = (free <= start).any(axis=1)
        # Where it costs nothing on several workers, the one with fewest tokens meanwhile.
        g = min(np.flatnonzero(usable).tolist(), key=lambda g: (int(grown[g]), int(load[g, span].sum())))
        b = int(np.argmax(free[g] <= start))
        free[g, b] = end
        slot[i] = g * slots + b
        load[g, span] += windows.tokens[i, span]
    return slot


def run_of(timetable: Timetable, windows: Windows) -> Run:
    """Return the timetable as the annealing reads it."""
    start = timetable.start
    mate_from = np.searchsorted(start, start, side="left").astype(np.int64)
    mate_to = np.searchsorted(start, start, side="right").astype(np.int64)
    running = np.append(timetable.running(), 0)
    free = running[start] < timetable.num_workers * timetable.slots_per_worker
    movable = np.flatnonzero(free | (mate_to - mate_from > 1)).astype(np.int64)
    return Run(windows.tokens, windows.first, windows.last, start, timetable.end, movable, mate_from, mate_to)


def good_placement(
    timetable: Timetable,
    windows: Windows,
    time_limit: float,
    seed: int,
    halt: Halt | None = None,
    moves: int | None = None,
) -> tuple[IntArray, int]:
    """Return the workers of the best placement found, and how many exchanges were tried.

    Parameters
    ----------
    timetable, windows
        The run, and its windows.
    time_limit
        Seconds.
    seed
        Of the annealing.
    halt
        Ends it between two annealings; None where nothing does.
    moves
        Exchanges of the first annealing; None for the default.
    """
    halt = halt or Halt()
    deadline = now() + int(time_limit * 1e9)
    slots, chains_of = timetable.slots_per_worker, timetable.num_workers * timetable.slots_per_worker
    first = greedy(timetable, windows)
    best, least = first // slots, timetable.barriers(first // slots)
    floor = int(windows.floor.sum())
    if timetable.num_workers == 1 or least == floor:
        return best, 0
    run = run_of(timetable, windows)
    if run.movable.size == 0:
        return best, 0
    count, columns = windows.tokens.shape
    chains = Chains(
        np.zeros(count, np.int64),
        np.zeros(chains_of, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros((columns, timetable.num_workers), np.int64),
        np.zeros(columns, np.int64),
        np.zeros(columns, np.int64),
        np.zeros(count, np.int64),
    )
    scale = max(1.0, floor / columns)
    dice, moves, tried, useless = new_dice(seed), moves or MOVES, 0, 0
    while useless < PATIENCE and now() < deadline and least > floor and not halt.is_asked:
        chains.slot[:] = first
        link(run, chains, slots)
        _, done = anneal(run, chains, slots, dice, moves, _HOT * scale, _COLD * scale, deadline)
        tried += done
        cost = timetable.barriers(chains.best // slots)
        useless = 0 if cost < least else useless + 1
        if cost < least:
            best, least = chains.best // slots, cost
        moves = min(int(moves * _LONGER), _MOST_MOVES)
    return best, tried
