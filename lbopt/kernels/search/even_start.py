"""An assignment that shares tokens out evenly and uses its slack up: what to try before a master program.

Where workers have room for more than they may take, the prices are often those of one threshold: all requests above it
are admitted, and go to workers that cannot be filled; the others are filled to the last token with smaller ones. A
master program takes long to say so, and its placements are a mixture. Serving the largest need first
(`fill.fill_evenly`) finds this division, and exchanges (`exchange`) use up what is left.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.exchange import exchange
from lbopt.kernels.search.fill import fill_evenly
from lbopt.kernels.search.keeping import offer
from lbopt.kernels.search.state import Search, Step

#: Looks of each worker at an exchange: at a time, as long as a quarter of what is missing is found in this time, and
#: where less is missing than another token of envelope costs.
_LOOKS, _LAST_LOOKS = 3, 20


@kernel
def try_even_start(step: Step, search: Search, i: int) -> bool:
    """Offer an even assignment at the envelope of range i; return whether it admits what the bound asks for.

    Not where requests must be admitted: exchanges may leave one of these waiting.
    """
    this = search.ranges[i]
    if step.forced > 0:
        return False
    M, target = this.last, step.workers * this.first - step.total - this.bound
    return _fill_and_exchange(step, search, M, target) >= target


@kernel
def _fill_and_exchange(step: Step, search: Search, M: int, target: int) -> int:
    """Offer an even assignment at envelope M, improved up to `target` tokens; return its tokens, -1 for none."""
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
