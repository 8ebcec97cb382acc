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

#: Looks of each of the others at an exchange, and where little is missing.
_LOOKS, _LAST_LOOKS = 20, 200

#: Rounds of the column generation.
_ROUNDS = 300


@kernel
def price_few(step: Step, search: Search, masters: Masters, M: int, few: int) -> int:
    """Price envelope M by the workers 0..few - 1, keep the prices, and return scale times the bound on all tokens.

    Offers the assignment that this leads to. Returns NONE where nothing fits, NO_BOUND beyond the deadline.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search and the master programs, which change in place.
    M, few
        Envelope, tokens; workers that are priced, from `with_few_slots`.
    """
    known, scratch, W = search.known, search.exchanging, step.load.size
    served = _serve(step, search, masters, M, few)
    if used_up(known):
        return NO_BOUND
    if served == NONE:
        return NONE
    recall(step, search, place_in_bank(search, known.prices - 1))
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

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search and the master programs, which change in place.
    M, few
        Envelope, tokens; workers.
    """
    pricing, found, m, W = search.pricing, search.pricing.generation, masters.rest, step.load.size
    for k in range(step.v.size):
        search.price[k] = search.best_price[k] = step.floor[k]
    if few == 0:
        keep_prices(step, search, M)
        return 0
    at = 0
    for r in range(W):  # the order of filling begins with those of fewest slots
        if step.rank[r] < few:
            pricing.rank[at] = step.rank[r]
            at += 1
    sub = part(
        *(step, step.n, step.load[:few], step.slots[:few], pricing.rank[:few].copy()),
        step.sums[: step.slots[few - 1] + 1],
    )
    reset_master(m, step.n, few, 2.0 * M + 1.0)
    begin_columns(search)
    generate_columns(sub, search, m, M, -1, _ROUNDS, AT_ONCE)
    if found.lowest == NONE:
        return NONE
    keep_prices(step, search, M)
    if found.converged == 0 or used_up(search.known):
        return -1
    recall(step, search, place_in_bank(search, search.known.prices - 1))
    begin_dive(sub, search)
    return dive(sub, search, m, M, found.lowest // step.scale, 0, search.kept, AT_ONCE)
