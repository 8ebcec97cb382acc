"""The bound that integer prices give, exactly, whatever they come from.

For all prices pi[w, h] >= 0 that add up to G at each step, and prices mu[k] (not positive where a class may wait),

    cost >= constant + sum pi[w, h] peak[w, h] + sum_k n_k mu_k + sum over workers of the cheapest allowed pattern,

where a request of class k costs worker w the amount sum_h pi[w, h] v[k, h] - total_k - mu_k. The first term holds since
an envelope is no less than any weighted mean of loads, the second since no class is used more than n_k times.

Reduced-cost fixing at the root: columns (class on a worker) that prices show to be in nothing below a known cost."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.known_ends.state import INFINITY, Box, Prices, Window

#: Sums of prices stay below it.
_LARGEST = float(1 << 60)


@kernel
def price_requests(window: Window, pi: Ints, mu: Ints, w: int, value: Ints) -> None:
    """Set value[k] to what a request of class k costs worker w, in units of 1/scale.

    Parameters
    ----------
    pi, mu
        (W + 1, T) and (K,) int64, prices in units of 1/scale.
    value
        (K,) int64; set in place.
    """
    v, total, scale = window.v, window.total, window.scale
    K, T = v.shape
    for k in range(K):
        value[k] = -scale * total[k] - mu[k]
    for h in range(T):
        price = pi[w, h]
        if price != 0:
            for k in range(K):
                value[k] += price * v[k, h]


@kernel
def cheapest_pattern(window: Window, box: Box, w: int, value: Ints, best: Ints) -> int:
    """Return the least sum of values of slots[w] requests that the box allows; INFINITY where there are none.

    Parameters
    ----------
    value
        (K,) int64, of each class, in units of 1/scale.
    best
        (Q + 1,) int64, scratch.
    """
    n, c = window.n, window.slots[w]
    K = n.size
    for count in range(c + 1):
        best[count] = INFINITY
    best[0] = 0
    for k in range(K - 1, -1, -1):
        if box.allowed[w, k] == 1:
            copies = min(n[k], c)
            # downwards, so that best[count - m] still speaks of the classes above k
            for count in range(c, 0, -1):
                for m in range(1, min(copies, count) + 1):
                    if best[count - m] < INFINITY:
                        best[count] = min(best[count], best[count - m] + m * value[k])
        for count in range(c + 1):
            if count < box.least[w, k] or count > box.most[w, k]:
                best[count] = INFINITY
    return best[c]


@kernel
def least_values(window: Window, w: int, value: Ints, best: Ints) -> bool:
    """Write the slots[w] least values of requests to best[:slots[w]], ascending; return whether there are so many.

    What a box rules out has the value INFINITY.
    """
    c, size = window.slots[w], 0
    for k in range(value.size):
        for _ in range(min(window.n[k], c)):
            if value[k] == INFINITY or (size == c and value[k] >= best[c - 1]):
                break
            place = size if size < c else c - 1
            size = min(size + 1, c)
            while place > 0 and best[place - 1] > value[k]:
                best[place] = best[place - 1]
                place -= 1
            best[place] = value[k]
    return size == c


@kernel
def within_range(window: Window, mu: Ints) -> bool:
    """Return whether sums over these prices stay inside int64; those over loads do by the choice of the scale."""
    most, requests = 0.0, 0.0
    for k in range(window.n.size):
        most = max(most, abs(float(mu[k])))
        requests += window.n[k]
    for w in range(window.slots.size):
        requests += window.slots[w]
    return most * requests < _LARGEST


@kernel
def exact_bound(window: Window, prices: Prices, box: Box) -> int:
    """Return a number of tokens that nothing in the box is below; INFINITY where a worker is left without a pattern.

    Prices that are too large to be added up prove nothing: -INFINITY.
    """
    if not within_range(window, prices.mu):
        return -INFINITY
    value = _scaled(window, prices, box)
    return INFINITY if value == INFINITY else window.constant - (-value) // window.scale


@kernel
def _scaled(window: Window, prices: Prices, box: Box) -> int:
    """Return the same in units of 1/scale, without the constant."""
    value = _shared(window, prices)
    for w in range(window.slots.size):
        price_requests(window, prices.pi, prices.mu, w, prices.value)
        least = cheapest_pattern(window, box, w, prices.value, prices.best)
        if least >= INFINITY:
            return INFINITY
        value += least
    return value


@kernel
def bound_of_all(window: Window, prices: Prices, deadline: int) -> int:
    """Return what `exact_bound` returns for the box that leaves everything open.

    Beyond the deadline (nanoseconds, see `lbopt.kernels.deadline`) nothing is proved: -INFINITY.
    """
    if not within_range(window, prices.mu):
        return -INFINITY
    value = _shared(window, prices)
    for w in range(window.slots.size):
        if passed(deadline):
            return -INFINITY
        price_requests(window, prices.pi, prices.mu, w, prices.value)
        if not least_values(window, w, prices.value, prices.best):
            return INFINITY
        for q in range(window.slots[w]):
            value += prices.best[q]
    return window.constant - (-value) // window.scale


@kernel
def _shared(window: Window, prices: Prices) -> int:
    """Return the terms of the bound that no pattern enters, in units of 1/scale."""
    W, T = window.peak.shape
    value = 0
    for w in range(W):
        for h in range(T):
            value += prices.pi[w, h] * window.peak[w, h]
    for k in range(window.n.size):
        value += window.n[k] * prices.mu[k]
    return value


@kernel
def fix_by_reduced_costs(window: Window, prices: Prices, box: Box, cost: int) -> int:
    """Rule out classes on workers where these prices say that nothing below `cost` takes them; return how many.

    Only at the root, where no chain is limited. A request that is not among the cheapest takes the place of the dearest
    of them, at least.

    Parameters
    ----------
    cost
        Tokens.
    """
    if not within_range(window, prices.mu):
        return 0
    base = _scaled(window, prices, box)
    fixed = 0
    for w in range(window.slots.size):
        price_requests(window, prices.pi, prices.mu, w, prices.value)
        for k in range(window.n.size):
            if box.allowed[w, k] == 0:
                prices.value[k] = INFINITY
        dearest = prices.best[window.slots[w] - 1] if least_values(window, w, prices.value, prices.best) else INFINITY
        for k in range(window.n.size):
            if box.allowed[w, k] == 1 and prices.value[k] > dearest:
                raised = base + prices.value[k] - dearest
                if window.constant - (-raised) // window.scale >= cost:
                    box.allowed[w, k] = 0
                    fixed += 1
    return fixed
