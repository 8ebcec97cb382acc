"""Price and serve the workers with one or two free slots first, where most others have more.

A worker of three and more slots finds a pattern that fills its margin to the last token nearly whatever the prices are.
One of one or two slots does not: what it loses depends on who else wants the few requests that would fit. So the
prices that matter are those of a master program of these workers alone, which is small: it takes less than a
millisecond where that of all workers takes a second, most of it spent among patterns that are equally good. Any prices
bound the tokens of all workers (`prices.evaluate`), so nothing has to be shown of them.

An assignment is made in the same order. A dive serves the workers of few slots at their optimum, the others share what
is left evenly, and their slack wanders between them until it is used up (`exchange`).
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.column_generation import AT_ONCE, NO_BOUND, begin_columns, generate_columns
from lbopt.kernels.search.dive import begin_dive, dive
from lbopt.kernels.search.even_fill import fill_evenly
from lbopt.kernels.search.exchange import exchange
from lbopt.kernels.search.keeping import keep_prices, offer, place_in_bank, recall
from lbopt.kernels.search.master import reset_master
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import NONE, QUICK, Masters, Search, Step, part

#: Slots of the workers that are priced first.
FEW = 2

#: The others are so many at least: one in this many workers.
_SHARE = 3

#: Looks of each of the others at an exchange, and where little is missing.
_LOOKS, _LAST_LOOKS = 20, 200

#: Nodes of a short descent, and patterns listed for a worker, within the dive.
_NODES = 200


@kernel
def with_few_slots(step: Step) -> int:
    """Return how many workers are priced first, 0 where that does not pay."""
    W = step.load.size
    few = 0
    while few < W and step.slots[few] <= FEW:
        few += 1
    return few if 0 < few and _SHARE * (W - few) >= W and step.forced == 0 else 0


@kernel
def price_few(step: Step, search: Search, masters: Masters, M: int, few: int) -> int:
    """Price envelope M by the workers 0..few - 1, keep the prices, and return scale times the bound on all tokens.

    Offers the assignment that this leads to. Returns NONE where nothing fits.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search and the master programs, which change in place.
    M, few
        Envelope, tokens; workers that are priced, from `with_few_slots`.
    """
    known, W, K = search.known, step.load.size, step.v.size
    pricing, found, m = search.pricing, search.pricing.generation, masters.rest
    at = 0
    for r in range(W):  # the order of filling begins with those of fewest slots
        if step.rank[r] < few:
            pricing.rank[at] = step.rank[r]
            at += 1
    rank = pricing.rank[:few].copy()
    sub = part(step, step.n, step.load[:few], step.slots[:few], rank, step.sums[: step.slots[few - 1] + 1])
    for k in range(K):
        search.price[k] = step.floor[k]
    reset_master(m, step.n, few, 2.0 * M + 1.0)
    begin_columns(search)
    generate_columns(sub, search, m, M, -1, 300, AT_ONCE)
    if found.lowest == NO_BOUND or used_up(known):
        return NO_BOUND
    if found.lowest == NONE:
        return NONE
    alone = found.lowest // step.scale
    converged = found.converged == 1
    keep_prices(step, search, M)
    recall(step, search, place_in_bank(search, known.prices - 1))
    served = -1
    if converged:
        begin_dive(sub, search)
        served = dive(sub, search, m, M, alone, 0, _NODES, _NODES, search.kept, AT_ONCE)
    recall(step, search, place_in_bank(search, known.prices - 1))
    total = evaluate(step, search, M, QUICK)
    known.work += 10 + W
    if total != NONE and served >= 0:
        target = total // step.scale
        if fill_evenly(step, search, M, few, search.kept) >= 0:
            tokens = exchange(step, search, M, target, _LOOKS * W, few, search.kept)
            known.work += _LOOKS * W
            if target - step.workers < tokens < target:  # less is missing than another token of envelope costs
                tokens = exchange(step, search, M, target, _LAST_LOOKS * W, few, search.kept)
                known.work += _LAST_LOOKS * W
            offer(step, search, search.kept, tokens)
    return total
