"""Waiting times that are exact up to the solution of a small Markov chain, seen at the starts of passes.

Same words as `waiting`; the pass time is 1. Both laws are those of work-conserving instances.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Chance of what is cut off a queue's distribution.
_TAIL = 1e-12


def round_robin_wait(num_instances: int, load: float) -> float:
    """Return the mean wait, in passes, of requests dealt to the instances in turn; passes without limit.

    An instance gets every N-th request of a Poisson process of rate r = N load. Let j be the number of requests that
    came anywhere since its own last one, at the start of a pass; K ~ Poisson(r) come during the pass. If j + K < N none
    is its own: it idles until its next one, and starts with j = 0; else it starts again at once with (j + K) mod N.
    With pi the stationary law of j, the m-th request of the pass (m = N - j, 2N - j, ...) is its own and waits
    (1 - S_m)^+, S_m the time of the m-th point: on average P(K >= m) - (m / r) P(K >= m + 1). Requests that find it
    idle wait 0. The mean wait is the expected sum of waits a pass over the expected number of requests a pass.
    """
    from scipy.stats import poisson

    N = num_instances
    rate = N * load
    arrivals = poisson(rate)
    most = int(arrivals.isf(_TAIL)) + 2 * N
    move = np.zeros((N, N))
    for j in range(N):
        count = np.arange(most)
        np.add.at(move[j], np.where(j + count < N, 0, (j + count) % N), arrivals.pmf(count))
    waited = requests = 0.0
    for j, share in enumerate(_stationary(move)):
        own = np.arange(N - j, most + 1, N)
        waited += share * float((arrivals.sf(own - 1) - own / rate * arrivals.sf(own)).sum())
        requests += share * float(arrivals.sf(own - 1).sum() + arrivals.cdf(N - 1 - j))
    return max(0.0, float(waited / requests))  # where no request waits, only rounding is left


def bounded_wait(load: float, capacity: int) -> float:
    """Return the mean wait, in passes, at a work-conserving instance whose passes hold at most `capacity` requests.

    Let X be how many wait at the end of a pass. (X - c)^+ are left when the next one starts, and Poisson(load) join
    them during it; if X = 0 the next starts with the first to come, alone. So X' = (X - c)^+ + Poisson(load), the bulk
    queue of Bailey (1954). A cycle is one pass, and an idle time of mean 1 / load with probability P(X = 0); the queue
    grows in a pass from (X - c)^+ by load * t. By Little's law

        E W = (E (X - c)^+ + load / 2) / (load + P(X = 0)).

    capacity 1 gives Pollaczek and Khinchine, a large one `immediate_wait`; load < capacity.
    """
    left_over, empty = _bulk_queue(load, capacity)
    return (left_over + load / 2) / (load + empty)


def many_servers_wait(num_instances: int, load: float) -> float:
    """Return the mean wait, in passes, in M/D/N: all wait together and a pass holds one request; load < 1.

    Whoever is in a pass at time t has left at t + 1, and whoever comes in between has not: with X requests present,
    X' = (X - N)^+ + Poisson(N load) one pass later (Crommelin 1932), the chain of a bulk queue. (X - N)^+ wait, so by
    Little's law E W = E (X - N)^+ / (N load).
    """
    left_over, _ = _bulk_queue(num_instances * load, num_instances)
    return left_over / (num_instances * load)


def _bulk_queue(load: float, capacity: int) -> tuple[float, float]:
    """Return E (X - capacity)^+ and P(X = 0) in the stationary law of X' = (X - capacity)^+ + Poisson(load)."""
    from scipy.stats import poisson

    rho = load / capacity
    # The tail is geometric with rate z, the root of exp(load (z - 1)) = z^c above 1: log z is about 2 (1 - rho).
    size = capacity + math.ceil(load) + math.ceil(-math.log(_TAIL) / min(1.0, max(1e-3, 1 - rho))) + 40
    move = np.zeros((size, size))
    count = np.arange(size)
    chance = poisson.pmf(count, load)
    for queue in range(size):
        left = max(queue - capacity, 0)
        move[queue, left:] = chance[: size - left]
        move[queue, -1] += max(0.0, 1 - move[queue].sum())
    law = _stationary(move)
    return float((law * np.maximum(count - capacity, 0)).sum()), float(law[0])


def _stationary(move: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the stationary law of a chain with these transitions (n, n)."""
    n = move.shape[0]
    system = np.vstack([(move.T - np.eye(n))[:-1], np.ones(n)])
    law: NDArray[np.float64] = np.linalg.solve(system, np.append(np.zeros(n - 1), 1.0))
    return law
