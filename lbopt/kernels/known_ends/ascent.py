"""Good prices without a linear program: the volume method (Barahona and Anbil, 2000), for large fleets.

At given prices each worker's cheapest pattern tells how the bound changes: the price of a load ought to rise where it,
averaged over recent patterns, exceeds others of that step, and the price of a class ought to fall where more of it is
used than there is. A step is taken in that direction, and prices are put back on what is allowed: shares of G at each
step, and no positive price of a class that may wait. Steps shrink geometrically; the best prices are kept.
"""

import numpy as np

from lbopt.kernels.arrays import Floats
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.known_ends.placing import mix_row, mix_rows
from lbopt.kernels.known_ends.state import Climb, Prices, Window

#: Share of the newest patterns in the averages.
_NEW = 0.3


@kernel
def cheapest_patterns(window: Window, pi: Floats, mu: Floats, loads: Floats, used: Floats, deadline: int) -> float:
    """Return the bound of these prices in tokens, with the loads and the use of classes of the patterns behind it.

    Minus infinity where the deadline passes before.

    Parameters
    ----------
    pi, mu
        (W + 1, T) and (K,) float64, prices of the loads and of the classes, per token.
    loads, used
        (W + 1, T) float64, tokens, and (K,) float64, requests; set in place.
    """
    v, total, n = window.v, window.total, window.n
    W, T = window.peak.shape
    K = n.size
    value = 0.0
    cost = np.empty(K)
    most = window.slots.max()
    chosen, dear = np.empty(most, np.int64), np.empty(most)
    for k in range(K):
        used[k] = 0.0
    for h in range(T):
        loads[W, h] = 0.0
    for k in range(K):
        value += n[k] * mu[k]
    for w in range(W):
        if passed(deadline):
            return -np.inf
        for k in range(K):
            cost[k] = -mu[k] - total[k]
        for h in range(T):
            loads[w, h] = window.peak[w, h]
            price = pi[w, h]
            if price > 0.0:
                value += price * window.peak[w, h]
                for k in range(K):
                    cost[k] += price * v[k, h]
        c, held = window.slots[w], 0
        for k in range(K):
            for _ in range(min(n[k], c)):
                if held == c and cost[k] >= dear[c - 1]:
                    break
                at = held if held < c else c - 1
                while at > 0 and dear[at - 1] > cost[k]:
                    dear[at], chosen[at] = dear[at - 1], chosen[at - 1]
                    at -= 1
                dear[at], chosen[at] = cost[k], k
                held = min(c, held + 1)
        for q in range(c):
            k = chosen[q]
            value += dear[q]
            used[k] += 1.0
            for h in range(T):
                loads[w, h] += v[k, h]
    return window.constant + value


@kernel
def put_on_shares(column: Floats, target_sum: float) -> None:
    """Replace a column by the nearest one without negative entries that adds up to `target_sum` (Michelot, 1986)."""
    top = column[0]
    for i in range(column.size):
        top = max(top, column[i])
    level = -1e300
    for _ in range(column.size):  # each turn drops an entry, unless it is the last; the largest always stays
        total, kept, before = 0.0, 0, level
        for i in range(column.size):
            if column[i] - top > level:
                total += column[i] - top
                kept += 1
        level = (total - target_sum) / max(1, kept)
        if level <= before:
            break
    for i in range(column.size):
        column[i] = max(0.0, column[i] - top - level)


@kernel
def first_prices(window: Window, pi: Floats, mu: Floats) -> None:
    """Charge the heaviest worker before for all loads, and each class for what it brings above the last admitted."""
    G, n, total = window.workers, window.n, window.total
    for h in range(pi.shape[1]):
        for w in range(pi.shape[0]):
            pi[w, h] = 0.0
    for h in range(pi.shape[1]):
        pi[window.owner[h], h] = G
    room = window.slots.sum()
    least = 0.0
    for k in range(n.size - 1, -1, -1):
        if room > 0:
            least = total[k]
        room -= n[k]
    for k in range(n.size):
        mu[k] = min(0.0, least - total[k])


@kernel
def ascend(window: Window, climb: Climb, steps: int, deadline: int) -> None:
    """Take steps from the prices at hand towards the goal; fewer where the deadline passes."""
    numbers, pi, mu, mean_loads, mean_used = climb.numbers, climb.pi, climb.mu, climb.mean_loads, climb.mean_used
    W, T = window.peak.shape
    K, G = window.n.size, window.workers
    loads, used, column = np.empty((W + 1, T)), np.empty(K), np.empty(W + 1)
    unit = 0.0
    for k in range(K):
        unit += window.total[k]
    unit = max(1.0, unit / (K * float(T) ** 0.5))
    for _ in range(steps):
        found = cheapest_patterns(window, pi, mu, loads, used, deadline)
        if found == -np.inf:
            return
        if numbers.started == 0.0:
            mix_rows(mean_loads, loads, 1.0)
            mix_row(mean_used, used, 1.0)
            numbers.best = found - 1.0
            numbers.started = 1.0
        mix_rows(mean_loads, loads, _NEW)
        mix_row(mean_used, used, _NEW)
        if found > numbers.best:
            numbers.best = found
            mix_rows(climb.best_pi, pi, 1.0)
            mix_row(climb.best_mu, mu, 1.0)
        numbers.step *= numbers.shrink
        length = 0.0
        for h in range(T):
            mean = 0.0
            for w in range(W + 1):
                mean += pi[w, h] * mean_loads[w, h] / G
            for w in range(W + 1):
                if pi[w, h] > 0.0 or mean_loads[w, h] > mean:
                    length += (mean_loads[w, h] - mean) ** 2
        for k in range(K):
            over = window.n[k] - mean_used[k]
            if mu[k] < 0.0 or over < 0.0 or window.must[k] == 1:
                length += (over * unit) ** 2
        if length < 1e-9:
            return
        step = numbers.step * max(1.0, numbers.goal - found) / length
        for k in range(K):
            mu[k] += step * unit * unit * (window.n[k] - mean_used[k])
            if window.must[k] == 0:
                mu[k] = min(0.0, mu[k])
        for h in range(T):
            for w in range(W + 1):
                column[w] = pi[w, h] + step * mean_loads[w, h]
            put_on_shares(column, float(G))
            for w in range(W + 1):
                pi[w, h] = column[w]


@kernel
def round_ascent(window: Window, climb: Climb, prices: Prices) -> None:
    """Set integer prices, in units of 1/scale, from the best ones."""
    pi, mu = climb.best_pi, climb.best_mu
    W, T = window.peak.shape
    scale, G = window.scale, window.workers
    for h in range(T):
        owed, largest = G * scale, 0
        for w in range(W + 1):
            price = max(0, int(pi[w, h] * scale))
            prices.pi[w, h] = price
            owed -= price
            if price > prices.pi[largest, h]:
                largest = w
        prices.pi[largest, h] += owed
        if prices.pi[largest, h] < 0:  # far from shares of G: the first prices will do at this step
            for w in range(W + 1):
                prices.pi[w, h] = 0
            prices.pi[window.owner[h], h] = G * scale
    for k in range(window.n.size):
        price = round(max(-1e18, min(1e18, mu[k] * scale)))
        prices.mu[k] = price if window.must[k] == 1 else min(0, price)
