"""Which envelopes: open ranges, the one of the least bound first, until none is below the best decision.

A bound V on the value of all patterns within the envelope b holds for every smaller one, so that prices prove

    objective >= G a - (loads before) - V     for all envelopes a..b.

A range is bounded at the prices of its neighbours and halved while it holds several envelopes. A single envelope gets
prices of its own, then a tree of placements with so many nodes; where they do not suffice, it is tried again with more,
once it is the cheapest one again. A range that is narrow beside what its bound lacks gets its own prices whole.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.bounds import clear_path, evaluate
from lbopt.kernels.conditions.columns import add_decision, dive, solve_prices
from lbopt.kernels.conditions.fill import fill, try_even_start
from lbopt.kernels.conditions.pattern import ROUGHLY
from lbopt.kernels.conditions.state import BORROWED, FORBIDDEN, FULL, NONE, OPEN, OWN, PROVED, Search, Step, book
from lbopt.kernels.conditions.tree import DONE, PAUSED, grow, keep_prices, plant
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.state import Master
from lbopt.kernels.stable_order import stable_order

#: Steps in the search of a pattern where ranges are bounded at the prices of others.
_COMPARING = 300

#: Rounds of column generation for the prices of an envelope.
_ROUNDS = 400

#: Nodes of the first tree of an envelope, and by how much each later one grows.
_NODES, _GROWTH = 40, 6

#: Envelopes at which an even decision is tried before their prices.
_EVENS = 6

#: Envelopes from which a dive starts.
_DIVES = 6

#: A bound beyond all objectives: the range is closed.
CLOSED = 1 << 61


@kernel
def advance(step: Step, s: Search, m: Master, nodes: int, most: int) -> int:
    """Go on with the search until it is proved, or the work has reached `most`; return PROVED, OPEN or FULL."""
    known, ranges = s.known, s.ranges
    while True:
        if known.range >= 0:
            i = known.range
            state = grow(step, s, m, ranges[i].first, ranges[i].last, nodes)
            if state == PAUSED:
                if used_up(known) or known.work >= most:
                    return OPEN
                continue
            known.range = -1
            if state == DONE:
                ranges[i].open = 0
                ranges[i].tree, ranges[i].length = s.tree.begun, known.records - s.tree.begun
            else:
                known.records, known.prices = s.tree.begun, s.tree.priced
        i = _cheapest(s)
        if i < 0 or ranges[i].bound >= known.cost:
            known.bound = known.cost
            return PROVED
        known.bound = max(known.bound, ranges[i].bound)
        if used_up(known) or known.work >= most:
            return OPEN
        if ranges[i].first < ranges[i].last and not _narrow(step, s, i):
            if known.ranges >= ranges.size:
                return FULL
            _halve(step, s, i)
        elif ranges[i].state == BORROWED:
            _price(step, s, m, i)
        elif ranges[i].first < ranges[i].last and ranges[i].tries > 0:
            if known.ranges >= ranges.size:
                return FULL
            _halve(step, s, i)
        else:
            tries = ranges[i].tries
            ranges[i].tries = tries + 1
            s.best_price[:] = s.prices[_row(ranges[i].priced)]
            plant(step, s, _NODES * _GROWTH ** min(tries, 8))
            known.range = i


@kernel
def begin(step: Step, s: Search, m: Master, first: int, last: int, floor: int) -> None:
    """Open the range first..last, bounded at prices of zero, and look for a first decision."""
    known = s.known
    known.ranges, known.range, known.records, known.prices, known.warm = 1, -1, 0, 0, 0
    known.nodes, known.solved, known.dives, known.written, known.bound = 0, 0, 0, 1, floor
    clear_path(step, s.path)
    s.best_price[:] = step.floor
    s.price[:] = step.floor
    keep_prices(s)
    ranges = s.ranges
    whole = ranges[0]
    whole.first, whole.last, whole.bound, whole.priced = first, last, floor, 0
    _restart(whole)
    known.evens, known.own = 0, 0
    for w in range(step.slots.size):
        s.ordered[w] = stable_order(step.work[w])
    _bound_at(step, s, 0, 0)
    _level_prices(step, s, first)
    _bound_at(step, s, 0, known.prices - 1)
    if step.workers > 0:
        try_even_start(step, s, first, first, whole.bound)
    if known.found == 0:
        _first_decision(step, s, m, first, last)
        _close_in(s, whole, whole.bound, whole.priced)


@kernel
def _restart(one: Record) -> None:
    """Put a range back to its beginning, as its envelopes are new; its bound and the prices of that stay."""
    one.state, one.tries, one.tree, one.length, one.open = BORROWED, 0, -1, 0, 1


@kernel
def _close_in(s: Search, one: Record, bound: int, row: int) -> None:
    """Raise the bound of a range, and keep the row of the prices that say so; close it where nothing better is left.

    Nothing but this, or a tree that ended, closes a range.
    """
    if bound > one.bound:
        one.bound, one.priced = bound, row
    if one.bound >= s.known.cost:
        one.open = 0


@kernel
def _level_prices(step: Step, s: Search, M: int) -> None:
    """Write down the best prices at envelope M of the form max(0, value - level): all that start are worth one level.

    The bound is convex in the level, which is halved for: it falls where workers ask for fewer of the classes that cost
    something than there are.
    """
    K = step.copies.size
    top = np.zeros(K - 1, dtype=np.int64)
    for w in range(step.slots.size):
        for k in range(K - 1):
            if step.work[w, k] <= M - step.load[w]:
                top[k] = max(top[k], step.value[w, k])
    levels = np.sort(top)
    s.effort.steps = 0  # what the multipliers say is near enough to compare levels
    low, high = 0, K - 2
    best, at = FORBIDDEN, 0
    while low <= high:
        middle = (low + high) // 2
        total, asked = _at_level(step, s, M, top, levels[middle])
        if total < best:
            best, at = total, levels[middle]
        if asked > 0:
            high = middle - 1
        else:
            low = middle + 1
    s.effort.steps = ROUGHLY
    for k in range(K):
        s.best_price[k] = step.floor[k] + (max(0, top[k] - at) * step.scale if k < K - 1 else 0)
    keep_prices(s)


@kernel
def _at_level(step: Step, s: Search, M: int, top: Ints, level: int) -> tuple[int, int]:
    """Return the bound at the prices of a level, and by how many requests that cost something more is asked for."""
    s.price[:] = step.floor
    asked, pattern = 0, s.pattern
    for k in range(top.size):
        s.price[k] += max(0, top[k] - level) * step.scale
        asked -= step.copies[k] if top[k] > level else 0
    s.known.work += 2 + step.slots.size
    total = evaluate(step, s, M, s.price)
    if total == NONE:
        return FORBIDDEN, asked
    for w in range(step.slots.size):
        for i in range(step.slots[w]):
            k = pattern[w, i]
            if pattern[w, 0] >= 0 and k < top.size and top[k] > level:
                asked += 1
    return total, asked


@kernel
def _first_decision(step: Step, s: Search, m: Master, first: int, last: int) -> None:
    """Try envelopes further and further from the least one, until a decision is filled."""
    s.price[:] = step.floor
    width = 0
    while first + width < last:
        if fill(step, s, m, first + width, s.price, False):
            return
        width = 2 * width + max(1, (last - first) // 256)
    fill(step, s, m, last, s.price, False)


@kernel
def _row(priced: int) -> int:
    """Return the row of some prices; the first where there was no room to write them down."""
    return max(0, priced)


@kernel
def _cheapest(s: Search) -> int:
    """Return the open range of the least bound, -1 for none."""
    best, least = -1, CLOSED
    book(s, s.known.ranges)
    for i in range(s.known.ranges):
        if s.ranges[i].open == 1 and s.ranges[i].bound < least:
            best, least = i, s.ranges[i].bound
    return best


@kernel
def _narrow(step: Step, s: Search, i: int) -> bool:
    """Return whether a range is treated like a single envelope."""
    one = s.ranges[i]
    return one.tries == 0 and 4 * step.workers * (one.last - one.first) <= s.known.cost - one.bound


@kernel
def _halve(step: Step, s: Search, i: int) -> None:
    """Split a range, and bound both halves at its prices and at the newest ones."""
    known, ranges = s.known, s.ranges
    j = known.ranges
    known.ranges = j + 1
    middle = (ranges[i].first + ranges[i].last) // 2
    ranges[j].first, ranges[j].last = middle + 1, ranges[i].last
    ranges[j].bound, ranges[j].priced = ranges[i].bound, ranges[i].priced
    ranges[i].last = middle
    for part in (j, i):
        _restart(ranges[part])
    _close_in(s, ranges[j], ranges[i].bound + step.workers * (middle + 1 - ranges[i].first), ranges[i].priced)
    own, newest = ranges[i].priced, known.prices - 1
    for part in (j, i):
        if newest >= 0 and ranges[part].open == 1 and (part == i or newest != own):
            _bound_at(step, s, part, newest)
    if own >= 0 and ranges[i].open == 1 and newest != own:  # of the upper half they say what they said of the whole
        _bound_at(step, s, i, own)


@kernel
def _bound_at(step: Step, s: Search, i: int, row: int) -> None:
    """Raise the bound of range i at the prices of a row."""
    one, known = s.ranges[i], s.known
    clear_path(step, s.path)
    s.best_price[:] = s.prices[row]
    s.effort.steps = _COMPARING
    total = evaluate(step, s, one.last, s.best_price)
    s.effort.steps = ROUGHLY
    known.work += 3 + step.slots.size
    _close_in(s, one, _proved(step, one.first, total), row)


@kernel
def _proved(step: Step, first: int, total: int) -> int:
    """Return the bound on the objective from envelope `first` on, where no value is above total / scale."""
    return CLOSED if total == NONE else step.workers * first - step.total - total // step.scale


@kernel
def _price(step: Step, s: Search, m: Master, i: int) -> None:
    """Give a range, as a single envelope, prices of its own."""
    one, known = s.ranges[i], s.known
    clear_path(step, s.path)
    if step.workers > 0 and known.evens < _EVENS:
        known.evens += 1
        try_even_start(step, s, one.first, one.last, one.bound)
        _close_in(s, one, one.bound, one.priced)
        if one.open == 0:
            return
    if known.own == 1:
        add_decision(step, s, m)
    s.price[:] = s.prices[_row(one.priced)]
    need = step.workers * one.first - step.total - known.cost + 1
    total = solve_prices(step, s, m, one.last, need, _ROUNDS, 4, False)
    known.solved += 1
    fill(step, s, m, one.last, s.best_price, True)
    row = keep_prices(s)
    _close_in(s, one, _proved(step, one.first, total), row)
    one.state = OWN
    if one.open == 1 and known.dives < _DIVES:
        known.dives += 1
        dive(step, s, m, one.first, one.last)
        _close_in(s, one, one.bound, one.priced)
