"""An assignment that shares tokens out evenly and uses its slack up: what to try before a master program.

Where workers have room for more than they may take, the prices are often those of one threshold: all requests above it
are admitted, and go to workers that cannot be filled; the others are filled to the last token with smaller ones. A
master program takes long to say so, and its placements are a mixture. Serving the largest need first
(`even_fill`) finds this division, and exchanges (`exchange`) use up what is left.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.even_fill import fill_evenly
from lbopt.kernels.search.exchange import exchange
from lbopt.kernels.search.keeping import offer
from lbopt.kernels.search.state import Search, Step

#: Looks of each worker at an exchange: at a time, as long as a quarter of what is missing is found in this time, and
#: where less is missing than another token of envelope costs.
_LOOKS, _LAST_LOOKS = 3, 20

#: How often the steps are halved in which the cheapest envelope is looked for.
_FINER = 4


@kernel
def try_even_start(step: Step, search: Search, i: int) -> bool:
    """Offer an even assignment at the envelope of range i; return whether it admits what the bound asks for.

    The first that does not is followed by one at the envelope where such assignments cost least. Not where requests
    must be admitted: exchanges may leave one of these waiting.
    """
    this, known = search.ranges[i], search.known
    if step.forced > 0:
        return False
    M, target = this.last, step.workers * this.first - step.total - this.bound
    if _fill_and_exchange(step, search, M, target) >= target:
        return True
    if known.uneven == 0 and this.bound < known.cost:
        best = _cheapest_filled(step, search, M)
        if best > M:
            _fill_and_exchange(step, search, best, step.workers * best - step.total - known.bound)
    return False


@kernel
def _fill_and_exchange(step: Step, search: Search, M: int, target: int) -> int:
    """Offer an even assignment at envelope M, improved up to `target` tokens; return its tokens, -1 for none.

    Parameters
    ----------
    step, search
        The decision, and the state of the search, which changes in place.
    M, target
        Envelope; tokens that suffice.
    """
    known, W = search.known, step.load.size
    known.work += W
    tokens = fill_evenly(step, search, M, 0, search.kept)
    if tokens < 0:
        return -1
    lacking = 2 * (target - tokens)
    while tokens < target and 4 * (target - tokens) <= 3 * lacking and not used_up(known):
        lacking, looks = target - tokens, _LOOKS * W
        known.work += looks
        tokens = exchange(step, search.exchanging, known, M, target, looks, 0, search.kept)
    if target - step.workers < tokens < target:
        looks = _LAST_LOOKS * W
        known.work += looks
        tokens = exchange(step, search.exchanging, known, M, target, looks, 0, search.kept)
    offer(step, search, search.kept, tokens)
    return tokens


@kernel
def _cheapest_filled(step: Step, search: Search, M: int) -> int:
    """Return the envelope above M whose even assignment costs least, to a sixteenth of its distance; M where none is.

    The distance is doubled first, then the best one is looked for around the best so far. What is found is offered.
    """
    known = search.known
    beyond = (known.cost - 1 + step.total + step.most) // step.workers
    best, lowest, ahead, width = M, known.cost, 1, 0
    while M + ahead <= beyond and not used_up(known):
        cost = _filled_cost(step, search, M + ahead)
        if cost < lowest:
            best, lowest, width = M + ahead, cost, ahead // 2
        ahead *= 2
    for _ in range(_FINER):
        width //= 2
        for side in (-1, 1):
            if width > 0 and not used_up(known):
                cost = _filled_cost(step, search, best + side * width)
                if cost < lowest:
                    best, lowest = best + side * width, cost
    return best


@kernel
def _filled_cost(step: Step, search: Search, M: int) -> int:
    """Return what an even assignment at envelope M costs, and offer it; where none is, what the best one costs."""
    known = search.known
    known.work += step.load.size
    tokens = fill_evenly(step, search, M, 0, search.kept)
    if tokens < 0:
        return known.cost
    offer(step, search, search.kept, tokens)
    return step.workers * M - step.total - tokens
