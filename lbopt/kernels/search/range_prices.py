"""The prices of a range of envelopes: the newest, a first threshold, those of few workers, a master program and a dive.

Each bounds the range by an exact evaluation, and `close_in` keeps which prices did.

A worker of three and more slots finds a pattern that fills its margin to the last token nearly whatever the prices are.
One of one or two slots does not: what it loses depends on who else wants the few requests that would fit. So where most
workers have three slots and more, the prices that matter are those of a master program of the others alone, which is
small: it takes less than a millisecond where that of all workers takes a second, most of it spent among patterns that
are equally good. Any prices bound the tokens of all workers (`prices.evaluate`), so nothing has to be shown of them. An
assignment is made in the same order. A dive serves the workers of few slots at their optimum, the others share what is
left evenly, and their slack wanders between them until it is used up (`exchange`).
"""

import numpy as np

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.columns import AT_ONCE, NO_BOUND, UNFINISHED, begin_columns, bonus_of, dive, generate_columns
from lbopt.kernels.search.exchange import exchange
from lbopt.kernels.search.fill import fill, fill_evenly
from lbopt.kernels.search.master import drop_columns, reset_master
from lbopt.kernels.search.open_ranges import (
    ANY_PRICES,
    close_in,
    improve,
    keep_prices,
    lowest_cost,
    narrow,
    offer,
    recall,
)
from lbopt.kernels.search.path import clear_path, leave, value_columns
from lbopt.kernels.search.prices import evaluate, threshold_prices
from lbopt.kernels.search.state import (
    CLOSED,
    COLUMNS,
    CONVERGED,
    GLANCE,
    IDLE,
    NONE,
    QUICK,
    ROUGH,
    SETTLE,
    Masters,
    Search,
    Step,
    part,
)

#: Pivots after which a master is begun anew, to be rid of rounding.
MOST_PIVOTS = 20_000

#: Envelopes this near to each other (tokens) share most columns.
NEAR = 2

#: Looks of each of the workers of many slots at an exchange, and where little is missing.
_LOOKS, _LAST_LOOKS = 20, 200


@kernel
def look_again(step: Step, search: Search, i: int) -> None:
    """Bound range i at the newest prices: they were found nearest to where the search is now.

    A single envelope, and a range treated like one, is worth a better look.
    """
    this, known, W = search.ranges[i], search.known, step.load.size
    a, b, scale = this.first, this.last, step.scale
    recall(step, search)
    this.priced, number = known.newest, known.newest - 1
    this.times += 1
    tokens = evaluate(step, search, b, GLANCE)
    known.work += 5 + W // 3
    if tokens != NONE and step.slots[W - 1] > 2:  # workers of one and two slots are looked at in full
        close_in(this, lowest_cost(step, a, tokens // scale), number)
        alone = a == b or narrow(step, search, i)
        if (alone or b - a < 3) and this.bound < known.cost:
            tokens = evaluate(step, search, b, QUICK if alone else ROUGH)
            known.work += 5 + W // 3
            known.strayed += a == b and tokens != NONE and lowest_cost(step, a, tokens // scale) < known.cost
    close_in(this, lowest_cost(step, a, tokens // scale) if tokens != NONE else CLOSED, number)


@kernel
def first_prices(step: Step, search: Search, i: int) -> None:
    """Price the envelope of range i by a threshold, and fill at these prices."""
    this, known = search.ranges[i], search.known
    M, W = this.last, step.load.size
    tokens = threshold_prices(step, search, M)
    known.work += 50 + 5 * W
    if tokens == NONE:
        close_in(this, CLOSED, ANY_PRICES)
        return
    keep_prices(step, search, M)
    _close_at_newest(step, search, this, tokens)
    recall(step, search)
    tokens = fill(step, search, M, search.leaf)
    if tokens >= 0:
        improve(step, search, search.leaf, M, tokens, 40)


@kernel
def _close_at_newest(step: Step, search: Search, this: Record, tokens: int) -> None:
    """Bound a range by what the newest prices say: scale times the tokens that no assignment there exceeds."""
    known = search.known
    close_in(this, lowest_cost(step, this.first, tokens // step.scale), known.newest - 1)
    known.aim = min(this.bound, known.cost)
    this.priced = known.newest


@kernel
def price_by_few(step: Step, search: Search, masters: Masters, i: int, few: int) -> None:
    """Price the envelope of range i by its `few` workers of few slots, and keep the assignment that this leads to."""
    this = search.ranges[i]
    tokens = price_few(step, search, masters, this.last, few)
    if tokens == NONE:
        close_in(this, CLOSED, ANY_PRICES)
    elif tokens != NO_BOUND:
        _close_at_newest(step, search, this, tokens)


@kernel
def best_prices(step: Step, search: Search, masters: Masters, i: int) -> bool:
    """Solve the master program at the envelope of range i, then dive from its optimum; return whether that ended."""
    this, known, found = search.ranges[i], search.known, search.pricing
    M, W, m = this.last, step.load.size, masters.whole
    base = step.workers * this.first - step.total
    if found.phase == IDLE:
        if known.warm == 0 or m.counts.pivots > MOST_PIVOTS:
            reset_master(m, step.n, W, step.slots.max(), 2.0 * M + 1.0)
            known.warm = 1
        elif abs(M - search.bank_at[(known.newest - 1) % search.bank_at.size]) > NEAR:
            drop_columns(m)  # most of them are in the way there
        _begin_at(step, search, masters, M)
        found.phase, found.range, found.begun = COLUMNS, i, m.counts.pivots
    if found.phase == COLUMNS:
        if not generate_columns(step, search, m, M, max(base - known.cost, step.least - 1), known.stop):
            return False
        found.phase = IDLE
        work = 10 + (m.counts.pivots - found.begun) * (W + m.counts.tight) ** 2 // 1000
        known.work += 10
        known.patience = (known.patience + work // (4 * (5 + W // 3))) // 2
        if found.lowest != NO_BOUND:  # else the deadline passed before the first prices
            keep_prices(step, search, M)
            _close_at_newest(step, search, this, found.lowest)
        if found.top >= 0:
            improve(step, search, search.spare, M, found.top, 100)
        if found.ended != CONVERGED or this.bound >= known.cost:
            return True
        found.phase = SETTLE
    filled = found.top
    least = max(base - known.cost + 1, step.least)
    top = dive(step, search, m, M, max(base - this.bound, step.least), least, known.stop)
    if top == UNFINISHED:
        return False
    found.phase = IDLE
    found.top = max(filled, top)
    if top >= 0:
        improve(step, search, search.spare, M, top, 100)
    return True


@kernel
def _begin_at(step: Step, search: Search, masters: Masters, M: int) -> None:
    """Let a column generation begin at envelope M, with nothing placed, at the newest prices."""
    clear_path(step, search.path)
    leave(step, search.path)
    value_columns(masters.whole, step, search.path, M, bonus_of(step))
    recall(step, search)
    begin_columns(search, True)


@kernel
def price_few(step: Step, search: Search, masters: Masters, M: int, few: int) -> int:
    """Price envelope M by the workers 0..few - 1, keep the prices, and return scale times the bound on all tokens.

    Offers the assignment that this leads to. Returns NONE where nothing fits, NO_BOUND beyond the deadline.
    """
    known, scratch, W = search.known, search.exchanging, step.load.size
    served = _serve(step, search, masters, M, few)
    if used_up(known):
        return NO_BOUND
    if served == NONE:
        return NONE
    recall(step, search)
    total = evaluate(step, search, M, QUICK)
    known.work += 10 + W
    if total != NONE and served >= 0 and fill_evenly(step, search, M, few, search.kept) >= 0:
        target = total // step.scale
        tokens = exchange(step, scratch, known, M, target, _LOOKS * W, few, search.kept)
        known.work += _LOOKS * W
        if target - step.workers < tokens < target:  # less is missing than another token of envelope costs
            tokens = exchange(step, scratch, known, M, target, _LAST_LOOKS * W, few, search.kept)
            known.work += _LAST_LOOKS * W
        offer(step, search, search.kept, tokens)
    return total


@kernel
def _serve(step: Step, search: Search, masters: Masters, M: int, few: int) -> int:
    """Keep the prices of the workers 0..few - 1, and write an assignment of them to search.kept.

    Returns its tokens, -1 where none was found, NONE where there is none.
    """
    found, known, W = search.pricing, search.known, step.load.size
    search.best_price[: step.v.size] = step.floor
    if few == 0:
        keep_prices(step, search, M)
        return 0
    rank = np.zeros(few, dtype=np.int64)
    at = 0
    for r in range(W):  # the order of filling begins with those of fewest slots
        if step.rank[r] < few:
            rank[at] = step.rank[r]
            at += 1
    sums = step.sums[: step.slots[few - 1] + 1]
    sub = part(step, step.n, step.load[:few], step.slots[:few], rank, sums)
    reset_master(masters.whole, step.n, few, step.slots.max(), 2.0 * M + 1.0)
    known.warm = 0  # for all workers it is begun anew
    clear_path(sub, search.path)
    leave(sub, search.path)
    search.price[: step.v.size] = step.floor
    begin_columns(search, True)
    generate_columns(sub, search, masters.whole, M, -1, AT_ONCE)
    if found.lowest == NONE:
        return NONE
    keep_prices(step, search, M)
    if found.ended != CONVERGED or used_up(known):
        return -1
    found.phase = SETTLE
    tokens = dive(sub, search, masters.whole, M, found.lowest // step.scale, 0, AT_ONCE)
    found.phase = IDLE
    search.kept[:few, : sums.size - 1] = search.spare[:few, : sums.size - 1]
    return tokens
