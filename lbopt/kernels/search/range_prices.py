"""The prices of a range of envelopes: the newest, a first threshold, those of few workers, a master program and a dive.

Each bounds the range by an exact evaluation, and `close_in` keeps which prices did.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.search.column_generation import NO_BOUND, begin_columns, generate_columns
from lbopt.kernels.search.dive import UNFINISHED, begin_dive, dive
from lbopt.kernels.search.few_slots import price_few
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.keeping import improve, keep_prices, place_in_bank, recall
from lbopt.kernels.search.master import copy_master, drop_columns, move_envelope, reset_master
from lbopt.kernels.search.open_ranges import SHOWN_ANEW, close_in, lowest_cost, narrow
from lbopt.kernels.search.prices import evaluate, threshold_prices
from lbopt.kernels.search.state import (
    CLOSED,
    COLUMNS,
    DIVE,
    GLANCE,
    IDLE,
    NONE,
    QUICK,
    ROUGH,
    Masters,
    Search,
    Step,
)

#: Pivots after which a master is begun anew, to be rid of rounding.
MOST_PIVOTS = 20_000

#: Envelopes this near to each other (tokens) share most columns.
NEAR = 2


@kernel
def look_again(step: Step, search: Search, i: int) -> None:
    """Bound range i at the newest prices: they were found nearest to where the search is now.

    A single envelope, and a range treated like one, is worth a better look.
    """
    this, known, W = search.ranges[i], search.known, step.load.size
    a, b, scale = this.first, this.last, step.scale
    recall(step, search, place_in_bank(search, known.prices - 1))
    this.priced = known.prices
    this.times += 1
    tokens = evaluate(step, search, b, GLANCE)
    known.work += 5 + W // 3
    if tokens != NONE and step.slots[W - 1] > 2:  # workers of one and two slots are looked at in full
        close_in(this, lowest_cost(step, a, tokens // scale), known.prices)
        alone = a == b or narrow(step, search, i)
        if (alone or b - a < 3) and this.bound < known.cost:
            tokens = evaluate(step, search, b, QUICK if alone else ROUGH)
            known.work += 5 + W // 3
            known.strayed += a == b and tokens != NONE and lowest_cost(step, a, tokens // scale) < known.cost
    close_in(this, lowest_cost(step, a, tokens // scale) if tokens != NONE else CLOSED, known.prices)


@kernel
def first_prices(step: Step, search: Search, i: int) -> None:
    """Price the envelope of range i by a threshold, and fill at these prices."""
    this, known = search.ranges[i], search.known
    M, W = this.last, step.load.size
    tokens = threshold_prices(step, search, M)
    known.work += 50 + 5 * W
    if tokens == NONE:
        close_in(this, CLOSED, SHOWN_ANEW)
        return
    keep_prices(step, search, M)
    close_in(this, lowest_cost(step, this.first, tokens // step.scale), known.prices)
    known.aim = min(this.bound, known.cost)
    this.priced = known.prices
    recall(step, search, place_in_bank(search, known.prices - 1))
    reached = fill(step, search, M, search.leaf)
    if reached >= 0:
        improve(step, search, search.leaf, M, reached, 40)


@kernel
def price_by_few(step: Step, search: Search, masters: Masters, i: int, few: int) -> None:
    """Price the envelope of range i by its `few` workers of few slots, and keep the assignment that this leads to.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search, the master programs and the trees, which change in place.
    i, few
        Open range, a single envelope or a narrow one, in search.ranges; workers, from `with_few_slots`.
    """
    this, known = search.ranges[i], search.known
    tokens = price_few(step, search, masters, this.last, few)
    if tokens == NONE:
        close_in(this, CLOSED, SHOWN_ANEW)
    elif tokens != NO_BOUND:
        close_in(this, lowest_cost(step, this.first, tokens // step.scale), known.prices)
        known.aim = min(this.bound, known.cost)
        this.priced = known.prices


@kernel
def best_prices(step: Step, search: Search, masters: Masters, i: int) -> bool:
    """Solve the master program at the envelope of range i, then dive from its optimum; return whether that ended.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search, the master programs and the trees, which change in place.
    i
        Open range, a single envelope or a narrow one, in search.ranges; its bound changes in place.
    """
    this, known = search.ranges[i], search.known
    pricing, found = search.pricing.state, search.pricing.generation
    G, total, M, W = step.workers, step.total, this.last, step.load.size
    m = masters.whole
    base = G * this.first - total
    if pricing.phase == IDLE:
        if known.warm == 0 or m.counts.pivots > MOST_PIVOTS:
            reset_master(m, step.n, W, 2.0 * M + 1.0)
            known.warm = 1
        else:
            if abs(M - search.bank_at[place_in_bank(search, known.prices - 1)]) > NEAR:
                drop_columns(m)  # most of them are in the way there
            move_envelope(m, step.load, M, 2.0 * M + 1.0)
        pricing.phase, pricing.range, pricing.before = COLUMNS, i, m.counts.pivots
        recall(step, search, place_in_bank(search, known.prices - 1))
        begin_columns(search)
    if pricing.phase == COLUMNS:
        if not generate_columns(step, search, m, M, max(base - known.cost, step.least - 1), 300, known.stop):
            return False
        pricing.phase = IDLE
        work = 10 + (m.counts.pivots - pricing.before) * (W + m.counts.tight) ** 2 // 1000
        known.work += 10
        known.patience = (known.patience + work // (4 * (5 + W // 3))) // 2
        if found.lowest != NO_BOUND:  # else the deadline passed before the first prices
            keep_prices(step, search, M)
            close_in(this, lowest_cost(step, this.first, found.lowest // step.scale), known.prices)
            known.aim = min(this.bound, known.cost)
            this.priced = known.prices
        if found.top >= 0:
            improve(step, search, search.spare, M, found.top, 100)
        if found.converged == 0 or this.bound >= known.cost:
            return True
        recall(step, search, place_in_bank(search, known.prices - 1))
        copy_master(m, masters.rest, W, step.v.size)
        begin_dive(step, search)
        pricing.phase = DIVE
    top = dive(
        *(step, search, masters.rest, M, max(base - this.bound, step.least)),
        *(max(base - known.cost + 1, step.least), search.kept, known.stop),
    )
    if top == UNFINISHED:
        return False
    pricing.phase = IDLE
    if top >= 0:
        found.top = max(found.top, top)
        improve(step, search, search.kept, M, top, 100)
    return True
