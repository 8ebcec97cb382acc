"""The time that a request waits for the pass that first serves it (SBS, arXiv 2512.16134, section 3).

Closed forms first:

N instances, passes of constant length T, gates (who comes during a pass waits for a later one), requests by a Poisson
process of rate N * load / T, so `load` is the mean number of requests per instance in the time of one pass (the Lambda
T of the source). Passes hold all that wait, without limit, unless a function says otherwise; `waiting_chains` has the
laws that need a small Markov chain. Times are in the unit of `pass_time`.

What separates the formulas is who chooses the instance and when passes start:

* *immediate*: bound on arrival, at random. *Work-conserving* instances start when a request comes; *back to back* ones
  start every T, filled or not (which is also the limit of high load).
* *tick*: all wait together and starts lie on a fixed lattice of step T / N.
* *frozen pool*: all wait together, back to back, each instance at a phase of its own that never moves.
* *spacing*: all wait together, and a dispatch comes at least T / N after the last one.

Waiting times that are exact up to the solution of a small Markov chain, seen at the starts of passes.

Same words as `waiting`; the pass time is 1. Both laws are those of work-conserving instances.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def busy_share(load: float) -> float:
    """Return the share of time in which a work-conserving instance is in a pass: load / (load + exp(-load)).

    A pass is followed by another at once unless no request came during it, which has probability exp(-load); then it
    waits for the next arrival, T / load on average. So a pass of length T goes with exp(-load) T / load of idle time.
    By PASTA it is also the probability that an arrival finds a pass running.
    """
    return load / (load + math.exp(-load))


def immediate_wait(load: float, pass_time: float = 1.0) -> float:
    """Return T / 2 * `busy_share`: mean wait, work-conserving instances, bound at random, any N.

    Random splitting leaves each instance a Poisson process. A request that finds it idle waits 0; one that finds a
    pass, of constant length and reached at a uniform point of it (PASTA), waits T / 2.
    """
    return pass_time / 2 * busy_share(load)


def immediate_variance(load: float, pass_time: float = 1.0) -> float:
    """Return P T^2/3 - (P T/2)^2, the variance of the same wait: U[0, T] with probability P = `busy_share`, else 0."""
    busy = busy_share(load)
    return pass_time**2 * (busy / 3 - busy**2 / 4)


def back_to_back_wait(pass_time: float = 1.0) -> float:
    """Return T / 2: bound on arrival without a look at the phase, a start every T; the wait is U[0, T], for any N."""
    return pass_time / 2


def tick_wait(num_instances: int, pass_time: float = 1.0) -> float:
    """Return T / (2N): starts lie on a lattice of step T / N, so the wait is U[0, T/N], at every load."""
    return pass_time / (2 * num_instances)


def uniform_variance(longest: float) -> float:
    """Return longest^2 / 12, the variance of U[0, longest]: T back to back, T / N under the tick."""
    return longest**2 / 12


def frozen_pool_wait(num_instances: int, pass_time: float = 1.0) -> float:
    """Return T / (N + 1): the mean over phases that are independent and uniform on the cycle and never move.

    Seen from an arrival, the next starts of the N instances are N independent U[0, T]; the request takes the first:
    P(W > w) = (1 - w/T)^N, whose integral is T / (N + 1).
    """
    return pass_time / (num_instances + 1)


def frozen_pool_variance(num_instances: int, pass_time: float = 1.0) -> float:
    """Return N T^2 / ((N+1)^2 (N+2)), the variance of the least of N uniforms (over arrivals and over phases)."""
    N = num_instances
    return N * pass_time**2 / ((N + 1) ** 2 * (N + 2))


def spacing_wait(num_instances: int, load: float, pass_time: float = 1.0) -> float:
    """Return T / (2N) * `busy_share(load)`: mean wait under spacing AND ready, that of immediate dispatch over N.

    Dispatches are at least T/N apart, so the N-th after one is at least T later: the next instance of the ring is
    always ready, and the queue meets one gated server with passes of T/N, fed at rate N load / T. Requests per such
    pass: load again. So it is `immediate_wait` on a clock N times as fast, at every load and for every capacity.
    """
    return immediate_wait(load, pass_time / num_instances)


def spacing_variance(num_instances: int, load: float, pass_time: float = 1.0) -> float:
    """Return the variance of that wait, `immediate_variance` on the faster clock."""
    return immediate_variance(load, pass_time / num_instances)


def break_even_load(num_instances: int) -> float:
    """Return the load below which the tick waits longer than immediate dispatch; N >= 2.

    T/2 * load / (load + exp(-load)) = T / (2N) is (N - 1) load = exp(-load), so load = W(1 / (N - 1)) with Lambert's W:
    0.567 at N = 2, and 1/N + 1/(2 N^3) - ... for large N. At N = 1 the tick is worse at every load (infinity).
    """
    from scipy.special import lambertw

    if num_instances == 1:
        return math.inf
    return float(lambertw(1 / (num_instances - 1)).real)


def single_server_wait(load: float, pass_time: float = 1.0) -> float:
    """Return load T / (2 (1 - load)): M/D/1, one request a pass (Pollaczek and Khinchine); load < 1."""
    return load * pass_time / (2 * (1 - load))


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

    A request in a pass at time t has left at t + 1, and one that comes in between has not: with X requests present,
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
