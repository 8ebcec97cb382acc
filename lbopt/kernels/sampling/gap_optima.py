"""The gap of the optima of many small steps (H = 0) against the bound of Lemma 2, all in one compiled loop.

A step is drawn from a stream of words: free slots, loads, `classes` sizes, and a pool that meets Definition 1 of BF-IO
with little to spare. Then every placement is looked at, worker by worker, unless it provably costs more than the best
(`lbopt.kernels.sampling.optima` has the argument), and what is left are all optima, or those of them that the rule for
ties prefers. Each is held against

    bound = (s - 2) + (D_pre - [s min c - (s - 1) max c])^+ - less,   s the largest size in the pool, `less` a plant.

No code of the solvers takes part. The pool is kept as a number of copies per size, for requests of one size are
interchangeable; an optimum is how many requests of each size every worker gets.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.compile import kernel
from lbopt.kernels.sampling.draw import uniform, word
from lbopt.kernels.sampling.optima import are_left, costs_at_least

#: Which optima count: all, those of lexicographically least sorted loads, those of least sum of squared loads.
EVERY, LEXIMAX, SQUARES = 0, 1, 2

#: What was seen. The bound is *at work* where it is below D_pre. An optimum is *tight* where its gap is the bound and
#: that is 1 or more: it would refute a bound that is smaller by one token. It is in *Case II* of the proof where a
#: lightest worker holds a request below the largest size.
TALLY = integers(
    "drawn",  # words of the stream that were used
    "steps",
    "optima",
    "at_work",
    "tight",
    "tight_at_work",  # both
    "tight_second",  # tight and in Case II
    "violations",
    "largest",  # gap less bound, tokens
)

#: The optima of one step; the names are those of TALLY.
STEP_TALLY = integers("optima", "tight", "tight_second", "violations", "largest")


class Example(NamedTuple):
    """The optimum of the largest excess over the bound, the first of them.

    Parameters
    ----------
    before, free
        int64 (G,): loads before admission (tokens), free slots.
    sizes, copies
        int64 (m,): tokens, and requests of each size.
    placed
        int64 (G, m): requests of each size that every worker gets.
    """

    before: Ints
    free: Ints
    sizes: Ints
    copies: Ints
    placed: Ints


@kernel
def tally_optima(
    stream: np.uint64,
    c_min: int,
    c_max: int,
    s_max: int,
    spread: int,
    plentiful: bool,
    ties: int,
    less: int,
    wanted: int,
    pattern: Ints,
    first: Ints,
    tally: Record,
    step: Record,
    worst: Example,
) -> None:
    """Draw steps and list their optima until there are `wanted`.

    Parameters
    ----------
    stream
        Where the stream of words begins.
    c_min, c_max
        Fewest and most free slots of a worker.
    s_max, spread
        Largest size, which every pool has, and largest load before admission, tokens.
    plentiful
        Whether the pool has as many requests of its largest size as there are free slots.
    ties
        EVERY, LEXIMAX or SQUARES.
    less
        Tokens that are taken off the bound.
    wanted
        Optima.
    pattern, first
        See `lbopt.kernels.sampling.optima.all_optima`.
    tally
        TALLY, changed in place; `largest` must be low enough at first.
    step
        STEP_TALLY, scratch.
    worst
        Written; its shapes say how many workers and sizes a step has.
    """
    G, m = worst.placed.shape
    before, free = np.empty(G, np.int64), np.empty(G, np.int64)
    sizes, copies = np.empty(m, np.int64), np.empty(m, np.int64)
    placed = np.empty((G, m), np.int64)
    while tally.optima < wanted:
        _draw_slots(stream, tally, c_min, c_max, free)
        _draw_loads(stream, tally, spread, before)
        _draw_sizes(stream, tally, s_max, sizes)
        _draw_copies(stream, tally, free.sum(), plentiful, copies)
        s = sizes[m - 1]
        apart = before.max() - before.min()
        bound = s - 2 + max(0, apart - (s * free.min() - (s - 1) * free.max())) - less
        gap_optima(before, free, sizes, copies, pattern, first, bound, ties, step, placed)
        tally.steps += 1
        tally.optima += step.optima
        tally.violations += step.violations
        tally.tight += step.tight
        tally.tight_second += step.tight_second
        if apart > bound:
            tally.at_work += step.optima
            tally.tight_at_work += step.tight
        if step.largest > tally.largest:
            tally.largest = step.largest
            worst.before[:] = before
            worst.free[:] = free
            worst.sizes[:] = sizes
            worst.copies[:] = copies
            worst.placed[:] = placed


@kernel
def gap_optima(
    before: Ints,
    free: Ints,
    sizes: Ints,
    copies: Ints,
    pattern: Ints,
    first: Ints,
    bound: int,
    ties: int,
    step: Record,
    placed: Ints,
) -> int:
    """Return the least imbalance (tokens) of one step; what its optima are like is written to `step`.

    Parameters
    ----------
    before, free, sizes, copies, pattern, first
        See `lbopt.kernels.sampling.optima.all_optima`.
    bound
        What the gap of an optimum is held against, tokens.
    ties
        EVERY, LEXIMAX or SQUARES: which of the optima count.
    step
        STEP_TALLY, written.
    placed
        int64 (G, m), written: the first optimum of the largest gap.
    """
    G, m = placed.shape
    most = np.empty(G, np.int64)
    for g in range(G):
        most[g] = before[g] + sizes[m - 1] * free[g]
    left = copies.copy()
    at = np.full(G, -1, np.int64)  # the pattern of a filled worker
    load, ordered, least = np.zeros(G, np.int64), np.zeros(G, np.int64), np.zeros(G, np.int64)
    best = G * most.max() + 1
    g = 0
    while g >= 0:
        if at[g] >= 0:
            for j in range(m):
                left[j] += pattern[at[g], j]
            at[g] += 1
        else:
            at[g] = first[free[g]]
        while at[g] < first[free[g] + 1] and not are_left(pattern[at[g]], left):
            at[g] += 1
        if at[g] == first[free[g] + 1]:
            at[g] = -1
            g -= 1
            continue
        load[g] = before[g]
        for j in range(m):
            left[j] -= pattern[at[g], j]
            load[g] += pattern[at[g], j] * sizes[j]
        cost = costs_at_least(load, most, g)
        if cost > best:
            continue
        if g < G - 1:
            g += 1
            continue
        if ties != EVERY:
            _key(load, ties, ordered)
        preferred = -1 if cost < best else (0 if ties == EVERY else _compared(ordered, least))
        if preferred > 0:
            continue
        if preferred < 0:
            best = cost
            least[:] = ordered
            step.optima = 0
            step.tight = 0
            step.tight_second = 0
            step.violations = 0
        excess = load.max() - load.min() - bound
        if step.optima == 0 or excess > step.largest:
            step.largest = excess
            for w in range(G):
                placed[w] = pattern[at[w]]
        step.optima += 1
        if excess == 0 and bound >= 1:
            step.tight += 1
            step.tight_second += _is_second_case(load, at, pattern)
        step.violations += excess > 0
    return best


@kernel
def _key(load: Ints, ties: int, key: Ints) -> None:
    """Write what a rule for ties compares: the loads, largest first, or the sum of their squares; both int64 (G,)."""
    if ties == SQUARES:
        key[:] = 0
        for g in range(load.size):
            key[0] += load[g] * load[g]
        return
    for g in range(load.size):  # by insertion: there are few
        i = g
        while i > 0 and key[i - 1] < load[g]:
            key[i] = key[i - 1]
            i -= 1
        key[i] = load[g]


@kernel
def _compared(one: Ints, other: Ints) -> int:
    """Return -1, 0 or 1: whether `one` is lexicographically below `other`, the same, or above."""
    for i in range(one.size):
        if one[i] != other[i]:
            return -1 if one[i] < other[i] else 1
    return 0


@kernel
def _is_second_case(load: Ints, at: Ints, pattern: Ints) -> bool:
    """Return whether a lightest worker holds a request below the largest size."""
    lightest, smaller = load.min(), 0
    for g in range(load.size):
        if load[g] == lightest:
            smaller += pattern[at[g], :-1].sum()
    return smaller > 0


@kernel
def _below(stream: np.uint64, tally: Record, n: int) -> int:
    """Return the next whole number 0 .. n - 1 of the stream."""
    tally.drawn += 1
    return int(uniform(word(stream, tally.drawn)) * n)


@kernel
def _draw_slots(stream: np.uint64, tally: Record, c_min: int, c_max: int, free: Ints) -> None:
    """Draw free slots, at least one in all; half of the time as many on every worker.

    Parameters
    ----------
    stream, tally
        See `tally_optima`.
    c_min, c_max
        Fewest and most free slots of a worker; 0 is taken for all workers only if c_max is 0.
    free
        int64 (G,), written.
    """
    equal = _below(stream, tally, 2) == 0
    free[:] = 0
    while free.max() == 0:
        for g in range(free.size):
            free[g] = free[0] if g > 0 and equal else c_min + _below(stream, tally, c_max - c_min + 1)


@kernel
def _draw_loads(stream: np.uint64, tally: Record, spread: int, before: Ints) -> None:
    """Draw loads; half of the time of few levels, for workers that are equally heavy are a case of their own.

    Parameters
    ----------
    stream, tally
        See `tally_optima`.
    spread
        Largest load, tokens.
    before
        int64 (G,), written: 0 .. `spread`.
    """
    G = before.size
    levels = 2 + _below(stream, tally, G - 1) if _below(stream, tally, 2) == 0 else G
    for g in range(G):
        before[g] = _below(stream, tally, spread + 1)
    if levels < G:
        for g in range(levels, G):
            before[g] = before[_below(stream, tally, levels)]


@kernel
def _draw_sizes(stream: np.uint64, tally: Record, s_max: int, sizes: Ints) -> None:
    """Draw strictly increasing sizes, the last of them the largest that there is.

    Parameters
    ----------
    stream, tally
        See `tally_optima`.
    s_max
        Largest size, tokens.
    sizes
        int64 (m,), written: 1 .. `s_max`.
    """
    wanted = sizes.size - 1
    sizes[wanted] = s_max
    taken = 0
    for size in range(1, s_max):
        if _below(stream, tally, s_max - size) < wanted - taken:
            sizes[taken] = size
            taken += 1


@kernel
def _draw_copies(stream: np.uint64, tally: Record, slots: int, plentiful: bool, copies: Ints) -> None:
    """Draw a pool that meets Definition 1 with little to spare, some sizes rare and others common.

    Parameters
    ----------
    stream, tally
        See `tally_optima`.
    slots
        Free slots of all workers.
    plentiful
        Whether there are as many requests of the largest size.
    copies
        int64 (m,), written.
    """
    m = copies.size
    weight = np.empty(m, np.int64)
    for j in range(m):
        weight[j] = 1 + _below(stream, tally, 20)
    copies[:] = 1
    if plentiful:
        copies[m - 1] = slots
        weight[m - 1] = 0
    total = weight.sum()
    while copies.sum() - copies.max() < slots:
        at = _below(stream, tally, total)
        j = 0
        while at >= weight[j]:
            at -= weight[j]
            j += 1
        copies[j] += 1
