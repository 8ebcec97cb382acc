"""Closed forms of the time that a request waits for the pass that first serves it (SBS, arXiv 2512.16134, section 3).

N instances, passes of constant length T, gates (who comes during a pass waits for a later one), requests by a Poisson
process of rate N * load / T, so `load` is the mean number of requests per instance in the time of one pass (the Lambda
T of the source). Passes hold whoever waits, without limit, unless a function says otherwise; `waiting_chains` has the
laws that need a small Markov chain. Times are in the unit of `pass_time`.

What separates the formulas is who chooses the instance and when passes start:

* *immediate*: bound on arrival, at random. *Work-conserving* instances start when a request comes; *back to back* ones
  start every T, filled or not (which is also the limit of high load).
* *tick*: all wait together and starts lie on a fixed lattice of step T / N.
* *frozen pool*: all wait together, back to back, each instance at a phase of its own that never moves.
* *spacing*: all wait together, and a dispatch comes at least T / N after the last one.
"""

from __future__ import annotations

import math


def busy_share(load: float) -> float:
    """Return the share of time in which a work-conserving instance is in a pass: load / (load + exp(-load)).

    A pass is followed by another at once unless no request came during it, which has probability exp(-load); then it
    waits for the next arrival, T / load on average. So a pass of length T goes with exp(-load) T / load of idle time.
    By PASTA it is also the probability that an arrival finds a pass running.
    """
    return load / (load + math.exp(-load))


def immediate_wait(load: float, pass_time: float = 1.0) -> float:
    """Return T / 2 * `busy_share`: mean wait, work-conserving instances, bound at random, any N.

    Random splitting leaves each instance a Poisson process. Whoever finds it idle waits 0; whoever finds a pass, of
    constant length and reached at a uniform point of it (PASTA), waits T / 2.
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


def tick_wait_with_latency(num_instances: int, latency: float, pass_time: float = 1.0) -> tuple[float, float, float]:
    """Return the wait at the scheduler, from arrival to start, and the idle share of an instance.

    The interval (T + L) / N makes every instance's cycle T + L, of which L is idle: the wait at the scheduler is that
    of the tick with T + L in place of T, and the way to the instance adds L.
    """
    cycle = pass_time + latency
    at_scheduler = tick_wait(num_instances, cycle)
    return at_scheduler, at_scheduler + latency, latency / cycle


def first_token_cut(num_instances: int) -> float:
    """Return (1 - 1/N) / 3: by how much the tick cuts wait plus one pass, from 3T/2 to T (1 + 1/(2N)), when busy."""
    return (1 - 1 / num_instances) / 3
