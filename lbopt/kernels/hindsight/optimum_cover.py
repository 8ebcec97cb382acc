"""Exact cover: G of the listed sets, one for each worker, that hold every request once and cost less than a target.

Workers are identical, so the first set may be any that holds a given request, the next any that holds a given one of
those left, and so on: always the request that fewest listed sets hold. With the sets of some workers chosen and R
tokens of a window left to the m others, the window costs at least the largest of: its floor, the tokens of the chosen
sets, ceil(R / m). The last worker gets what is left over. There the requests that the sets leave open are placed
(`optimum_completion`), and the placement's cost is counted exactly, step by step.

Loads are kept in 32 bits, shortened by `shift` bits and rounded down; what is left to others is rounded down as well.
So a shortened bound never exceeds the bound that it stands for.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.hindsight.optimum_completion import OPEN, Exact, complete
from lbopt.kernels.hindsight.optimum_lists import Shorts, Words

#: Windows that a bound adds up between two comparisons with the target; rows of loads are padded to a multiple of it.
BLOCK = 16

#: Not filtered yet, in `Cover.begin`.
UNKNOWN = -1

COVER = integers(
    "workers",
    "slots",
    "target",  # placements of this cost or more are of no interest
    "shift",
    "best",  # cost of the best placement found, below the target; -1 for none
    "open",  # least bound of a cover whose open requests took too long to place; 2^62 for none
    "first",  # the request that the first set holds
    "room",  # entries of `Cover.filtered` that are in use
    "nodes",
    "deadline",
)


@by_reference
class Cover(NamedTuple):
    """The listed sets, and what is chosen of them."""

    mask: Words  # (F, words)
    load: Shorts  # (F, D) shortened tokens, D a multiple of `BLOCK`
    total: Shorts  # (D,) shortened W, rounded down
    holders: Shorts  # sets that hold request 0, then those that hold request 1, ...
    holders_from: Ints  # (N + 1,)
    order: Ints  # (N,) requests, held by fewest sets first
    begin: Ints  # (N,) where in `filtered` the sets that hold a request and go with the first set begin, or UNKNOWN
    until: Ints  # (N,)
    filtered: Shorts  # as many as `holders`
    covered: Words  # (G, words) requests of the sets chosen before each level
    peak: Shorts  # (G, D) largest tokens of these
    used: Shorts  # (G, D) their sum
    level: Shorts  # (G, D) what a window costs at least at each level
    least: Ints  # (G,) the sum of these
    chosen: Ints  # (G,) sets
    place: Ints  # (G,) next candidate
    stop: Ints  # (G,) end of the candidates
    request: Ints  # (n,) which request of the timetable each bit stands for


@kernel
def _threshold(state: Record) -> int:
    """Return the target in shortened tokens, rounded up."""
    return (state.target + (1 << state.shift) - 1) >> state.shift


@kernel
def _bound(cover: Cover, state: Record, level: int, s: int, limit: int) -> bool:
    """Return whether set s, chosen at a level, leaves a bound below the limit.

    Parameters
    ----------
    cover
        The lists, and what is chosen of them.
    state
        `COVER`.
    level
        Sets chosen before.
    s
        Row of the set.
    limit
        Shortened tokens; bounds of so much or more are of no interest.
    """
    total = cover.least[level]
    others = state.workers - level - 1
    lost = np.int32((level + 1) if state.shift > 0 else 0)
    load, peak = cover.load[s], cover.peak[level]
    used, floor, totals = cover.used[level], cover.level[level], cover.total
    for k in range(0, load.size, BLOCK):
        more = 0
        for c in range(k, k + BLOCK):
            x = load[c]
            rest = np.int32(totals[c] - used[c] - x - lost)
            if others == 2:
                rest = np.int32(rest >> 1)
            elif others > 2:
                rest = np.int32(rest // others)
            more += int(max(peak[c], x, rest) - floor[c])
        total += more
        if total >= limit:
            return False
    return True


@kernel
def _enter(cover: Cover, state: Record, level: int, s: int) -> None:
    """Choose set s at a level and make the next level's covered requests, peaks and floors.

    Parameters
    ----------
    cover
        Changed at the next level.
    state
        `COVER`.
    level
        Sets chosen before.
    s
        Row of the set.
    """
    cover.chosen[level] = s
    deeper, left = level + 1, state.workers - level - 1
    lost = (level + 1) if state.shift > 0 else 0
    for w in range(cover.mask.shape[1]):
        cover.covered[deeper, w] = cover.covered[level, w] | cover.mask[s, w]
    least = 0
    for c in range(cover.load.shape[1]):
        x = cover.load[s, c]
        cover.peak[deeper, c] = max(cover.peak[level, c], x)
        cover.used[deeper, c] = cover.used[level, c] + x
        rest = (cover.total[c] - cover.used[deeper, c] - lost) // left
        cover.level[deeper, c] = max(cover.peak[deeper, c], rest)
        least += cover.level[deeper, c]
    cover.least[deeper] = least


@kernel
def _disjoint(cover: Cover, level: int, s: int) -> bool:
    shared = np.uint64(0)
    for w in range(cover.mask.shape[1]):
        shared |= cover.covered[level, w] & cover.mask[s, w]
    return shared == np.uint64(0)


@kernel
def _next_request(cover: Cover, level: int) -> int:
    """Return the request that fewest sets hold among those not covered; -1 where all are."""
    for k in range(cover.order.size):
        i = cover.order[k]
        if (cover.covered[level, i >> 6] >> np.uint64(i & 63)) & np.uint64(1) == np.uint64(0):
            return i
    return -1


@kernel
def _filter(cover: Cover, state: Record, i: int, limit: int) -> None:
    """List the sets that hold request i and go with the first set.

    Parameters
    ----------
    cover
        Its filtered lists are changed.
    state
        `COVER`; ``room`` and ``nodes`` are changed.
    i
        Request.
    limit
        Shortened tokens; bounds of so much or more are of no interest.
    """
    low, high = cover.holders_from[i], cover.holders_from[i + 1]
    cover.begin[i] = state.room
    for e in range(low, high):
        s = cover.holders[e]
        if _disjoint(cover, 1, s):
            state.nodes += 1
            if _bound(cover, state, 1, s, limit):
                cover.filtered[state.room] = s
                state.room += 1
    cover.until[i] = state.room


@kernel
def _leaf(cover: Cover, exact: Exact, state: Record, levels: int) -> None:
    """Complete the placement in which the last worker takes what the chosen sets leave; keep it if it is better.

    Parameters
    ----------
    cover
        The chosen sets.
    exact
        The timetable; its best placement is changed.
    state
        `COVER`; ``target``, ``best`` and ``open`` are changed.
    levels
        Sets chosen.
    """
    exact.worker[:] = OPEN
    for e in range(cover.request.size):
        i, word, bit = cover.request[e], e >> 6, np.uint64(e & 63)
        exact.worker[i] = levels
        for g in range(levels):
            if (cover.mask[cover.chosen[g], word] >> bit) & np.uint64(1) != np.uint64(0):
                exact.worker[i] = g
    bound, cost = complete(exact, state.slots, state.target, state.deadline)
    if 0 <= cost < state.target:
        state.target, state.best = cost, cost
    state.open = min(state.open, bound)


@kernel
def _descend(cover: Cover, state: Record, level: int, limit: int) -> bool:
    """Prepare the candidates of a level; return False where there is none or no request is left.

    Parameters
    ----------
    cover
        Its candidates are changed.
    state
        `COVER`.
    level
        Sets chosen before, 1 or more.
    limit
        Shortened tokens; bounds of so much or more are of no interest.
    """
    i = _next_request(cover, level)
    if i < 0:
        return False
    if cover.begin[i] == UNKNOWN:
        _filter(cover, state, i, limit)
    cover.place[level], cover.stop[level] = cover.begin[i], cover.until[i]
    return True


@kernel
def search_cover(cover: Cover, exact: Exact, state: Record, low: int, high: int) -> int:
    """Try sets `low` to `high` of those that hold the first request; return how many are finished.

    Parameters
    ----------
    cover
        The lists; what is chosen is changed.
    exact
        The timetable; its best placement is changed.
    state
        `COVER`; ``target`` and ``best`` change as better placements are found.
    low, high
        Which of the first sets are tried.
    """
    workers = state.workers
    for e in range(low, high):
        if passed(state.deadline):
            return e
        s = cover.holders[cover.holders_from[state.first] + e]
        if not _bound(cover, state, 0, s, _threshold(state)):
            continue
        _enter(cover, state, 0, s)
        cover.begin[:] = UNKNOWN
        state.room = 0
        level = 1
        if workers == 2 or _next_request(cover, 1) < 0:
            _leaf(cover, exact, state, 1)
            continue
        _descend(cover, state, 1, _threshold(state))
        while level >= 1:
            if cover.place[level] >= cover.stop[level]:
                level -= 1
                continue
            s = cover.filtered[cover.place[level]]
            cover.place[level] += 1
            state.nodes += 1
            if state.nodes & 1023 == 0 and passed(state.deadline):
                return e
            if level > 1 and not _disjoint(cover, level, s):
                continue
            if not _bound(cover, state, level, s, _threshold(state)):
                continue
            _enter(cover, state, level, s)
            level += 1
            if level == workers - 1 or _next_request(cover, level) < 0:
                _leaf(cover, exact, state, level)
                level -= 1
                continue
            if not _descend(cover, state, level, _threshold(state)):
                level -= 1
    return high
