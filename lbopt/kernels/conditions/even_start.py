"""Decisions that share room out evenly and use their slack up: what to try before a master program.

Where workers fill several slots, a master program takes a tenth of a second, and its decisions are a mixture. Serving
the largest need first (`even_fill`) and handing slack on (`handing`) takes milliseconds, and is often as good as what
the bound permits.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.even_fill import fill_evenly
from lbopt.kernels.conditions.fill import offer
from lbopt.kernels.conditions.handing import hand_slack
from lbopt.kernels.conditions.state import Search, Step
from lbopt.kernels.deadline import used_up

#: Looks of each worker at a time, as long as a quarter of what is missing is found in it, and at last.
_LOOKS, _LAST_LOOKS = 3, 20

#: How far beyond an envelope another one is looked for; doubling it does not overflow.
_FARTHEST = 1 << 60

#: How often the steps are halved in which the cheapest envelope is looked for.
_FINER = 4


@kernel
def try_even_start(step: Step, s: Search, first: int, M: int, bound: int) -> None:
    """Offer a decision at envelope M, and one at the envelope where such decisions cost least."""
    known = s.known
    target = step.workers * first - step.total - bound
    _fill_and_hand(step, s, M, target)
    if bound < known.cost:
        best = _cheapest_filled(step, s, M, bound)
        if best > M:
            _fill_and_hand(step, s, best, step.workers * best - step.total - bound)


@kernel
def _fill_and_hand(step: Step, s: Search, M: int, target: int) -> None:
    """Offer an even decision at envelope M, improved up to a value of `target`."""
    known, W = s.known, step.slots.size
    known.work += W
    if not fill_evenly(step, s, M):
        return
    missing = target - leaf_value(step, s)
    lacking = 2 * missing
    while missing > 0 and 4 * missing <= 3 * lacking and not used_up(known):
        lacking = missing
        missing -= hand_slack(step, s, missing, _LOOKS * W)
    if 0 < missing < step.workers:
        hand_slack(step, s, missing, _LAST_LOOKS * W)
    offer(step, s)


@kernel
def leaf_value(step: Step, s: Search) -> int:
    """Return the value of the decision in s.leaf and s.leaf_mode."""
    total = 0
    for w in range(step.slots.size):
        total += step.mode_value[s.leaf_mode[w]]
        for i in range(step.slots[w]):
            total += step.value[w, s.leaf[w, i]]
    return total


@kernel
def _cheapest_filled(step: Step, s: Search, M: int, bound: int) -> int:
    """Return the envelope above M whose even decision costs least, to a sixteenth of its distance; M where none is."""
    known = s.known
    beyond = M + min((known.cost - bound) // step.workers, _FARTHEST)
    best, lowest, ahead, width = M, known.cost, 1, 0
    while M + ahead <= beyond and not used_up(known):
        cost = _filled_cost(step, s, M + ahead)
        if cost < lowest:
            best, lowest, width = M + ahead, cost, ahead // 2
        ahead *= 2
    for _ in range(_FINER):
        width //= 2
        for side in (-1, 1):
            if width > 0 and not used_up(known):
                cost = _filled_cost(step, s, best + side * width)
                if cost < lowest:
                    best, lowest = best + side * width, cost
    return best


@kernel
def _filled_cost(step: Step, s: Search, M: int) -> int:
    """Return what an even decision at envelope M costs, and offer it; where none is, what the best one costs."""
    s.known.work += step.slots.size
    if not fill_evenly(step, s, M):
        return s.known.cost
    offer(step, s)
    return step.workers * M - step.total - leaf_value(step, s)
