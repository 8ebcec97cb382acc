"""What a search keeps: the best assignment, and the log of all prices that bound something."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.exchange import exchange, with_few_slots
from lbopt.kernels.search.state import Search, Step

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
