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
    window
        The decision.
    pi, mu
        (W + 1, T) and (K,) int64, prices in units of 1/scale.
    w
        The worker.
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
    window, box
        The decision and the node at hand.
    w
        The worker.
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
def cheapest_of_all(window: Window, w: int, value: Ints, best: Ints) -> int:
    """Return what `cheapest_pattern` returns where the box leaves everything open: the least slots[w] values.

    Parameters
    ----------
    window
        The decision.
    w
        The worker.
    value
        (K,) int64, of each class, in units of 1/scale.
    best
        (Q + 1,) int64, scratch: the least values so far, ascending.
    """
    n, c = window.n, window.slots[w]
    size = 0
    for k in range(n.size):
        for _ in range(min(n[k], c)):
            if size == c and value[k] >= best[c - 1]:
                break
            place = size if size < c else c - 1
            size = min(size + 1, c)
            while place > 0 and best[place - 1] > value[k]:
                best[place] = best[place - 1]
                place -= 1
            best[place] = value[k]
    if size < c:
        return INFINITY
    least = 0
    for place in range(c):
        least += best[place]
    return least


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
    value = _shared(window, prices)
    for w in range(window.slots.size):
        price_requests(window, prices.pi, prices.mu, w, prices.value)
        least = cheapest_pattern(window, box, w, prices.value, prices.best)
        if least >= INFINITY:
            return INFINITY
        value += least
    return window.constant - (-value) // window.scale


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
        least = cheapest_of_all(window, w, prices.value, prices.best)
        if least >= INFINITY:
            return INFINITY
        value += least
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
