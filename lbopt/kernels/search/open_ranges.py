"""What a search keeps: the best assignment, the log of prices, and the ranges of envelopes that they bound.

A range is closed where its bound is not below the best cost. Prices raise a bound (`close_in`), or the tree of the
range does (`close_by_tree`), and both are written down. So what the search leaves is a log: for each range, the prices
that bound it, or a tree whose nodes name theirs. The proof is that log (`lbopt.solvers.exact.decision`), and nothing in
it is taken on trust there.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.exchange import exchange, with_few_slots
from lbopt.kernels.search.pattern import BRANCHES, best_pattern, prefix_best
from lbopt.kernels.search.state import CLOSED, Search, Step
from lbopt.kernels.search.tables import choices_of
from lbopt.kernels.stable_order import stable_order

#: Envelopes that stay open at the same prices, after which one gets prices of its own.
ASTRAY = 32

#: A range is narrow where its width costs at most this share of what its bound lacks.
NARROW = 4

#: Ranges from which on narrow ones are looked for even if no master program was solved.
MANY = 1000

#: From this size on, most envelopes are loads that no worker can have.
SPARSE = 1 << 16

#: The states of a range, each named after what is due: to be halved whatever its width (where a single envelope is
#: left of it, it is fresh); its first prices; the prices of a master program; a tree of placements.
HALVE, FRESH, MASTER, BRANCH = -1, 0, 1, 2

#: Stands for the number of some prices where all prices prove the same: nothing fits, or the count of tokens suffices.
ANY_PRICES = 0


@kernel
def close_in(this: Record, bound: int, row: int) -> None:
    """Raise the bound of a range to `bound`, where it is below, and keep the number of the prices that prove it."""
    if bound > this.shown:
        this.shown, this.row = bound, row
    this.bound = max(this.bound, bound)


@kernel
def close_by_tree(this: Record, bound: int) -> None:
    """Raise the bound of a range to what its tree proves."""
    this.bound = max(this.bound, bound)


@kernel
def lowest_cost(step: Step, first: int, tokens: int) -> int:
    """Return the least cost in a range from envelope `first` on whose assignments admit at most so many tokens."""
    return step.workers * first - step.total - tokens if tokens >= step.least else CLOSED


@kernel
def restart(this: Record) -> None:
    """Put a range back to its beginning: its envelopes have changed, or its tree is gone, and what that has proved."""
    this.bound = this.shown
    this.state, this.level, this.planted, this.times = FRESH, 0, 0, 0


@kernel
def push(search: Search, parent: Record, first: int) -> int:
    """Cut off what a range has from envelope `first` on as a range of its own, and return its number.

    It keeps what prices say of the parent, which holds there as well. -1 where there is no room for it.
    """
    at, ranges = search.known.ranges, search.ranges
    if at == ranges.size:
        return -1
    search.known.ranges = at + 1
    new = ranges[at]
    new.first, new.last, new.beyond = first, parent.last, parent.beyond
    new.shown, new.row, new.priced = parent.shown, parent.row, parent.priced
    restart(new)
    parent.last = parent.beyond = first - 1
    return at


@kernel
def begin(step: Step, search: Search, least: int) -> None:
    """Open ranges from the least envelope there is, not below `least`, to the last one that could be better."""
    load, slots, sums = step.load, step.slots, step.sums
    G, total, M, most = step.workers, step.total, step.heaviest, step.most
    for w in range(load.size):
        M = max(M, load[w] + sums[slots[w]])
    M = max(M, least)
    end = (search.known.cost - 1 + total + most) // G
    search.known.strayed, search.known.astray = 0, ASTRAY
    width = 1
    while end >= M:
        last = min(end, M + width - 1)
        new = search.ranges[search.known.ranges]
        new.first, new.last, new.beyond = M, last, last
        new.shown, new.row, new.priced = max(0, G * M - total - most), ANY_PRICES, 0
        restart(new)
        search.known.ranges += 1
        M = last + 1
        width *= 2


@kernel
def closed_ranges(step: Step, search: Search, bound: int, nodes: Ints) -> int:
    """Write first and last envelope, prices and tree of each range that a cost below `bound` needs; return how many.

    The tree is the number of the range, -1 where prices suffice. Ranges ascend. What closes one closes the envelopes
    beyond it, too, at which no worker has a load of its own. Below the first there is not room for the least tokens,
    which prices of zero, one row after the last, say.
    """
    if bound <= 0:
        return 0  # no cost is below 0
    ranges, known, count = search.ranges, search.known, 1
    end = (bound - 1 + step.total + step.most) // step.workers
    first = np.zeros(known.ranges, dtype=np.int64)
    for i in range(first.size):
        first[i] = ranges[i].first
    nodes[0, 0], nodes[0, 1], nodes[0, 2], nodes[0, 3] = 0, end, known.prices, -1
    for i in stable_order(first):
        one = ranges[i]
        if one.first > min(end, one.beyond):
            continue
        if one.first <= one.last:
            if count == 1:
                nodes[0, 1] = one.first - 1
            nodes[count, 0], nodes[count, 2] = one.first, one.row
            nodes[count, 3] = i if one.shown < bound else -1
            count += 1
        if count > 1:
            nodes[count - 1, 1] = one.beyond
    return count


@kernel
def _progress(this: Record) -> int:
    """Return how far the work on a range has come: by level, then by state."""
    return 8 * this.level + this.state


@kernel
def cheapest(search: Search) -> int:
    """Return the open range with the least bound, the one that has come furthest among equals; -1 for none."""
    ranges = search.ranges
    best, lowest, furthest = -1, 0, 0
    for j in range(search.known.ranges):
        bound = ranges[j].bound
        if best < 0 or bound < lowest or (bound == lowest and _progress(ranges[j]) > furthest):
            best, lowest, furthest = j, bound, _progress(ranges[j])
    return best


@kernel
def reached(step: Step, search: Search, M: int) -> int:
    """Return the largest load of at most M that some worker can have, M itself where that is not settled quickly."""
    v, n, load = step.v, step.n, step.load
    prefix_best(v.size, v, n, search.best)
    choices = choices_of(step, search, v, n, search.best, step.sums, 1)
    top = step.heaviest
    for w in range(load.size):
        if used_up(search.known):
            return M
        margin = M - load[w]
        value, bound = best_pattern(choices, step.slots[w], margin, margin, margin, BRANCHES, search.leaf[w])
        if bound >= 0:
            top = max(top, load[w] + (value if value == bound else margin))
    return top


@kernel
def narrow(step: Step, search: Search, i: int) -> bool:
    """Whether halving range i further cannot close it: its width costs little beside what its bound lacks.

    Not before a good assignment is known: from a master program, or from an even start where huge requests let
    the bound jump from one range to the next; or halving led to many ranges. Where all requests are admitted an
    envelope closes all below it, so that ranges are bisected by it.
    """
    this, known = search.ranges[i], search.known
    lack = known.cost - this.bound
    if step.least == step.most:
        return True
    huge = known.uneven > 0 and step.v[step.v.size - 1] > SPARSE
    halved = known.warm == 1 or huge or known.ranges >= MANY
    return halved and NARROW * step.workers * (this.last - this.first) <= lack


#: Rounds for which each worker gets one look at an exchange.
_SHARE = 8


@kernel
def offer(step: Step, search: Search, pattern: Ints, tokens: int) -> None:
    """Keep an assignment if it is the best so far; its cost is taken at the load it really reaches.

    One that takes more of a class than there is, or not all that must be admitted, is not kept.
    """
    load, slots, v = step.load, step.slots, step.v
    M = step.heaviest
    for w in range(load.size):
        after = load[w]
        for q in range(slots[w]):
            after += v[pattern[w, q]]
        M = max(M, after)
    cost = step.workers * M - step.total - tokens
    if cost < search.known.cost and _is_one(step, search.waiting, pattern):
        search.known.cost = cost
        for w in range(load.size):
            for q in range(slots[w]):
                search.answer[w, q] = pattern[w, q]


@kernel
def _is_one(step: Step, waiting: Ints, pattern: Ints) -> bool:
    """Whether there are as many requests of each class as an assignment takes, and it takes those that it must."""
    for k in range(step.v.size):
        waiting[k] = step.n[k]
    for w in range(step.load.size):
        for q in range(step.slots[w]):
            waiting[pattern[w, q]] -= 1
    is_one = True
    for k in range(step.v.size):
        is_one = is_one and waiting[k] >= 0 and (waiting[k] == 0 or step.floor[k] >= 0)
    return is_one


@kernel
def improve(step: Step, search: Search, pattern: Ints, M: int, tokens: int, rounds: int) -> None:
    """Offer an assignment and what `exchange` makes of it."""
    offer(step, search, pattern, tokens)
    target = step.workers * M - step.total - search.known.aim
    if tokens < target and with_few_slots(step) >= 0:
        looks = rounds * step.load.size // _SHARE
        tokens = exchange(step, search.exchanging, search.known, M, target, looks, 0, pattern)
        search.known.work += looks
        offer(step, search, pattern, tokens)


@kernel
def write_down(step: Step, search: Search, at: int) -> int:
    """Write search.best_price to the log, with its envelope `at`, -1 for a node of a tree; return its number."""
    number = search.known.prices
    row = number % search.bank.shape[0]
    for k in range(step.v.size):
        search.bank[row, k] = search.best_price[k]
    search.bank_at[row] = at
    search.known.prices = number + 1
    return number


@kernel
def keep_prices(step: Step, search: Search, M: int) -> None:
    """Make search.best_price, found at envelope M, the newest prices."""
    search.known.newest = write_down(step, search, M) + 1
    search.known.strayed = 0


@kernel
def recall(step: Step, search: Search) -> None:
    """Put the newest prices into search.price."""
    row = (search.known.newest - 1) % search.bank.shape[0]
    for k in range(step.v.size):
        search.price[k] = search.bank[row, k]
