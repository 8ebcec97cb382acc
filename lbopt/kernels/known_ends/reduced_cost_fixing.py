"""Reduced-cost fixing at the root: columns (class on a worker) that prices show to be in nothing below a known cost."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.bounds import cheapest_pattern, price_requests, within_range
from lbopt.kernels.known_ends.state import INFINITY, Box, Prices, Window


@kernel
def fix_by_reduced_costs(window: Window, prices: Prices, box: Box, cost: int) -> int:
    """Rule out classes on workers where these prices say that nothing below `cost` takes them; return how many.

    Only at the root, where no chain is limited. A request that is not among the cheapest takes the place of the dearest
    of them, at least.

    Parameters
    ----------
    window
        The decision.
    prices
        Their scratch is overwritten.
    box
        The root; its `allowed` is changed in place.
    cost
        Tokens.
    """
    scale, W, K = window.scale, window.slots.size, window.n.size
    T = window.v.shape[1]
    if not within_range(window, prices.mu):
        return 0
    base = 0
    for w in range(W):
        for h in range(T):
            base += prices.pi[w, h] * window.peak[w, h]
    for k in range(K):
        base += window.n[k] * prices.mu[k]
    for w in range(W):
        price_requests(window, prices.pi, prices.mu, w, prices.value)
        base += cheapest_pattern(window, box, w, prices.value, prices.best)
    fixed = 0
    for w in range(W):
        price_requests(window, prices.pi, prices.mu, w, prices.value)
        dearest = dearest_chosen(window, box, w, prices.value, prices.best)
        for k in range(K):
            if box.allowed[w, k] == 1 and prices.value[k] > dearest:
                raised = base + prices.value[k] - dearest
                if window.constant - (-raised) // scale >= cost:
                    box.allowed[w, k] = 0
                    fixed += 1
    return fixed


@kernel
def dearest_chosen(window: Window, box: Box, w: int, value: Ints, best: Ints) -> int:
    """Return the slots[w]-th least value of the requests allowed, copies counted; INFINITY for fewer requests.

    Parameters
    ----------
    window, box
        The decision and the node at hand.
    w
        The worker.
    value
        (K,) int64, of each class, in units of 1/scale.
    best
        (Q + 1,) int64, scratch.
    """
    c, held = window.slots[w], 0
    for k in range(value.size):
        if box.allowed[w, k] == 0:
            continue
        for _ in range(min(c, window.n[k])):
            if held == c and value[k] >= best[c - 1]:
                break
            at = held if held < c else c - 1
            while at > 0 and best[at - 1] > value[k]:
                best[at] = best[at - 1]
                at -= 1
            best[at] = value[k]
            held = min(c, held + 1)
    return best[c - 1] if held == c else INFINITY
