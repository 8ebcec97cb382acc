r"""What binding early costs: a request that waits in a worker's queue was placed by sight that is as old as its wait.

**Bound W steps early.** A saturated fleet: G workers, B slots each, always full, and Q requests bound to each worker;
who ends is replaced by the head of the worker's own queue, whose length the router keeps. Ends come p B a step, so a
request waits about W = Q/(pB) steps, and all that starts within W steps was bound before them: the load is out of the
router's hands that long. Of a slot with size y it knows that W steps later it holds y + W with probability r = (1-p)^W,
else a request of the queue that is A' old, A' < W. Which requests are in the queue is known, how many of them start on
which step is not. So, the sizes of the queue being known, a slot has the variance

    V = r (1 - r) E[(Y + W - f)^2] + (1 - r) Var A' = sigma_A^2 (1 - r^2) + sigma_s^2 r (1 - r),     f = E[s] + E[A'],

with sigma_A^2 = (1-p)/p^2. By the argument of `stale` no router that binds so early leaves less than one worker with
all of G B V of that would (`bound_floor`), and one that keeps workers alike no less than G E[max_g xi_g], xi_g of B
independent slots (`bound_level`); a router that levels what it expects of the loads at the time of the start leaves
that. W = 0 leaves nothing of it, and for W to infinity the ages of the slots remain: G e_G sqrt(B) sigma_A.

**Idle slots.** A worker that runs out of slots while another has some is the other price. In an open fleet with lambda
arrivals a worker and step, N = lambda/p requests run on average. A router that levels the numbers it expects, by
reports d steps old, leaves the number on a worker normal with mean N and variance V' = lambda sum_a F(a) (1 - c(a)),
and what is above B waits while other workers have free slots:

    E[waiting] = sqrt(V') (phi(z) - z Phi(-z)),     z = (B - N) / sqrt(V'),

requests a worker (`overflow`). A random split is the chain of one worker, X' = X - Bin(min(X, B), p) + Poisson(lambda),
solved exactly (`random_waiting`). A pool has the same chain with G B slots and G lambda arrivals: practically nobody
waits.

**Slots that a pool does not see.** A pool binds late but must see that a slot is free. With reports of every T steps a
slot that starts at a report serves its life A and stays empty until the next report: by renewal its busy share is

    E[A] / E[T ceil(A/T)] = (1 - (1-p)^T) / (p T)       (geometric lives; `seen_share` for all others).

Sources: Erlang 1917 for the delay system in continuous time; Smith 1958 for renewal. The laws are lbopt's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from lbopt.exceptions import InputError
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.slot_law import slot_law
from lbopt.theory.laws.stale import Lives, Unseen

#: States of a chain of one worker, and of a pool.
MOST_STATES = 6000

#: A wait that is short of a whole number of steps by less counts as that.
_WHOLE = 0.02


def bound_slot(p: float, prompts: PromptLaw, wait: int) -> Unseen:
    """Return what a router cannot know of one slot so many steps ahead, the sizes of the queue being known.

    Its `requests` is the variance of whether the request that is seen now still runs.
    """
    if wait < 0:
        raise InputError(f"a request is bound {wait} steps before it starts; expected 0 or more")
    if wait == 0:
        return Unseen(0.0, 0.0, 0.0)
    slot = slot_law(prompts, p)
    size = np.arange(slot.probabilities.size) / slot.unit
    r = (1 - p) ** wait
    ages = np.arange(wait)
    share = p * (1 - p) ** ages / (1 - r)
    mean_age = float(share @ ages)
    spread, skew = (float(share @ (ages - mean_age) ** power) for power in (2, 3))
    apart = size + wait - (float(prompts.mean) + mean_age)
    first, second, third = (float(slot.probabilities @ apart**power) for power in (1, 2, 3))
    variance = r * (1 - r) * second + (1 - r) * spread
    cumulant = r * (1 - r) * (1 - 2 * r) * third - 3 * r * (1 - r) * first * spread + (1 - r) * skew
    return Unseen(r * (1 - r), variance, cumulant)


def queue_doubt(B: int, p: float, queue: int, wait: int) -> float:
    """Return sum_i pi_i (1 - pi_i) over the places i of a queue, pi_i the chance that its request runs `wait` steps on.

    Parameters
    ----------
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    queue
        Requests bound to the worker that have not started.
    wait
        Steps.
    """
    if wait == 0 or queue == 0:
        return 0.0
    steps = np.arange(wait + 1)
    started = stats.binom.sf(np.arange(queue)[:, None], B * steps, p)  # place i starts when i + 1 requests have ended
    runs = np.diff(started, axis=1) @ (1 - p) ** (wait - steps[1:])
    return float(runs @ (1 - runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQueues:
    """A saturated fleet in which each worker has a queue.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    prompts
        Law of the prompts.
    queue
        Requests bound to each worker that have not started.
    """

    G: int
    B: int
    p: float
    prompts: PromptLaw
    queue: int


def bound_floor(fleet: BoundQueues) -> float:
    """Return the least mean imbalance (tokens) of any rule where each worker has a queue of so many bound requests."""
    return bound_unseen(fleet).least(fleet.G)


def bound_level(fleet: BoundQueues) -> float:
    """Return what workers alike leave (tokens), each with a queue of so many bound requests, if all else is level."""
    return bound_unseen(fleet).imbalance(fleet.G)


def bound_unseen(fleet: BoundQueues) -> Unseen:
    """Return what a router cannot know of a load when it binds, averaged over the workers."""
    B, p, prompts, queue = fleet.B, fleet.p, fleet.prompts, fleet.queue
    wait = math.floor(queue / (p * B) + _WHOLE)  # in a step that is begun the router has a hand
    slot = bound_slot(p, prompts, wait)
    doubt = float(prompts.variance) * queue_doubt(B, p, queue, wait)
    return Unseen(B * slot.requests, B * slot.variance + doubt, B * slot.third)


def overflow(number: float, variance: float, B: int) -> float:
    """Return the mean excess over B of a normal number of requests: those that wait."""
    if variance <= 0:
        return max(0.0, number - B)
    spread = math.sqrt(variance)
    z = (B - number) / spread
    return spread * (math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) - z * float(special.ndtr(-z)))


def counted_waiting(G: int, lives: Lives, arrivals: float, period: int, B: int) -> float:
    """Return the mean number that waits at a worker, for a router that levels numbers by reports every `period` steps.

    Parameters
    ----------
    lives
        Of the requests.
    arrivals
        Requests a worker and step.
    period
        Steps between reports.
    B
        Slots of a worker.
    """
    number = arrivals * lives.mean
    unseen = [lives.unseen(arrivals, age).requests for age in range(period)]
    each = [overflow(number, number / G + (1 - 1 / G) * variance, B) for variance in unseen]
    return float(np.mean(each))


def random_waiting(arrivals: float, p: float, B: int) -> float:
    """Return the mean number that waits at a worker with B slots and Poisson arrivals of its own, exactly.

    Parameters
    ----------
    arrivals
        Mean arrivals a step.
    p
        Probability that a request ends in a step.
    B
        Slots.
    """
    load = arrivals / (p * B)
    if not 0 < load < 1:
        raise InputError(f"{arrivals:g} arrivals a step are {load:.3g} of what {B} slots serve; expected less than all")
    count = B + math.ceil(40 / (1 - load)) + math.ceil(10 * math.sqrt(arrivals)) + 10
    if count > MOST_STATES:
        raise InputError(f"a chain of {count:,} states at load {load:.3g}; expected a lower load or fewer slots")
    law = _stationary(_chain(arrivals, p, B, count))
    states = np.arange(count)
    return max(0.0, float(law @ np.maximum(states - B, 0)))


def _chain(arrivals: float, p: float, B: int, count: int) -> NDArray[np.float64]:
    """Return the transitions of the number at a worker, float64 (count, count), arrivals after ends."""
    come = stats.poisson.pmf(np.arange(count), arrivals)
    rows = np.zeros((count, count))
    for state in range(count):
        busy = min(state, B)
        left = stats.binom.pmf(np.arange(busy + 1), busy, p)[::-1]  # stays from state - busy up to state
        row = np.convolve(left, come)[: count - (state - busy)]
        rows[state, state - busy : state - busy + row.size] = row
        rows[state, -1] += 1 - rows[state].sum()
    return rows


def _stationary(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the law that the transitions leave as it is."""
    count = len(rows)
    system = rows.T - np.eye(count)
    system[-1] = 1.0
    right = np.zeros(count)
    right[-1] = 1.0
    return np.asarray(np.linalg.solve(system, right), np.float64)


def seen_share(lives: Lives, period: int) -> float:
    """Return the share of its time that a slot is busy if it is filled only at reports, of every `period` steps."""
    if period < 1:
        raise InputError(f"the period of reports is {period} steps; expected at least 1")
    # ceil(A/T) counts the multiples of T, from 0, that a life outlasts.
    return lives.mean / (period * float(lives.alive[::period].sum()))
