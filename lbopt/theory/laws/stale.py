"""What old state costs a router: of running requests, and of those that are bound before they start.

What sight of age d costs: the part of a load that no router can know, and the herd of a router that counts nothing.

An open fleet: A requests a worker arrive in a step, A Poisson of mean lambda, each starts at once where it is sent,
grows by one token a step and is there a steps later with probability F(a), independently of everything. A router that
acts now saw the workers d steps ago and knows what it sent since. A request of age a is then there with probability

    c(a) = F(a) / F(max(a - d, 0)),

to the router's knowledge: it was seen alive at the age a - d, or it was sent later and never seen. So what the router
cannot know of a load is a sum of independent terms, of mean zero, and with m_j(a) = E[(S + a)^j] its cumulants are

    V_d   = lambda sum_a F(a) (1 - c(a)) m_2(a),
    K_d   = lambda sum_a F(a) (1 - c(a)) (1 - 2 c(a)) m_3(a).

**Floor.** Let mu_g be what the router expects of the loads and xi_g the rest, independent normals in the limit of many
requests. Where it sends things moves their variances v_g, but not the sum: on average G V_d, whatever the rule. With z
the normal quantile of 1 - 1/G, for every mu and every split of the variance

    E[max_g (mu_g + xi_g)] - sum_g mu_g / G  >=  phi(z) sqrt(sum_g v_g),

and one worker that has all of it attains this (the manual, *What old sight costs*, has the proof). With the skewness of
that worker the floor of any rule is G [phi(z) sqrt(G V_d) + z phi(z) K_d / (6 V_d)], `Unseen.least`.

**Workers alike.** Where no worker's unseen variance is below v the floor is higher, G e_G sqrt(v): take the same
variance off all, average over the permutations of the workers, and use that the maximum is convex (Jensen). So a rule
that keeps workers alike, v = V_d, leaves G [e_G sqrt(V_d) + K_d / (6 V_d) (E[Z^2] - 1) + ...], by Cornish and Fisher as
in `fcfs_imbalance`: `Unseen.imbalance`. A router that levels mu reaches it. For geometric lives
F(a) = q^a and V_d is q^d (1 - q^d) times the second moments of what was seen, plus what was sent since: an
Ornstein-Uhlenbeck process that forgets at the rate p. V_0 = 0; for d to infinity V_d tends to lambda sum_a F(a) (1 -
F(a)) m_2(a), which is what even arrivals leave.

**Herd.** A router that sends to the least loaded by a report of every T steps, and adds nothing, sends a whole window,
M = lambda G T requests, to one worker. While windows stand out of the noise each worker is hit in turn, every G T
steps, and the loads are the steps of a ladder, M times the sums of F(t) m_1(t) over the windows at distance G T:
`ReportedFleet.herd`. Where G T is short against lives the ladder is even, and its imbalance is

    G (G - 1) lambda E[S] T / 2.

Sources: Mitzenmacher 2000 (How useful is old information?, the periodic model); Dahlin 2000. The laws are lbopt's.

What binding early costs: a request that waits in a worker's queue was placed by sight that is as old as its wait.

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
solved exactly (`random_waiting`). A pool has the same chain with G B slots and G lambda arrivals: practically no
request waits.

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
from lbopt.theory.laws.normal_maximum import expected_maximum, expected_squared_maximum, lone_maximum
from lbopt.theory.laws.slot_law import PromptLaw, slot_law

#: Ages that fewer requests reach are left out of a geometric law.
TAIL = 1e-12

#: Most ages of a law: a request of more tokens is in no trace.
MOST_AGES = 1 << 22


@dataclass(frozen=True, slots=True)
class Lives:
    """How long requests run, and what they hold at each age.

    Parameters
    ----------
    alive
        float64 (n,): share of the requests that are there a steps after their start; 1 at a = 0.
    moments
        float64 (3, n): mean, mean square and mean cube of the tokens that they hold then.
    """

    alive: NDArray[np.float64]
    moments: NDArray[np.float64]

    @classmethod
    def geometric(cls, p: float, prompts: PromptLaw) -> Lives:
        """Return lives that end with probability `p` in every step, whatever the prompt."""
        if not 0 < p < 1:
            raise InputError(f"the probability of an end is {p}; expected 0 < p < 1")
        count = 1 if p > 1 - TAIL else math.ceil(math.log(TAIL) / math.log1p(-p))
        if count > MOST_AGES:
            raise InputError(f"the probability of an end is {p}: lives of up to {count:,} steps; expected a larger one")
        ages = np.arange(count, dtype=np.float64)
        mean, variance, third = (float(each) for each in (prompts.mean, prompts.variance, prompts.third_moment))
        held = mean + ages
        moments = np.array([held, held**2 + variance, held**3 + 3 * held * variance + third])
        return cls((1 - p) ** ages, moments)

    @classmethod
    def observed(cls, prompt: NDArray[np.int64], output: NDArray[np.int64]) -> Lives:
        """Return the lives of requests with these prompts and outputs, int64 (n,) tokens, each output at least 1."""
        if prompt.size == 0 or prompt.shape != output.shape or output.min() < 1:
            raise InputError(f"lives of {prompt.size} prompts, {output.size} outputs; expected as many, outputs from 1")
        count = int(output.max())
        ages = np.arange(count, dtype=np.float64)
        # Sums of 1, s, s^2, s^3 over the requests whose output is above a, by sums from the end.
        powers = [
            np.bincount(output - 1, weights=prompt.astype(np.float64) ** j, minlength=count)[::-1].cumsum()[::-1]
            for j in range(4)
        ]
        n, s, s2, s3 = powers
        first = s / n + ages
        second = s2 / n + 2 * ages * s / n + ages**2
        third = s3 / n + 3 * ages * s2 / n + 3 * ages**2 * s / n + ages**3
        return cls(n / n[0], np.array([first, second, third]))

    @property
    def mean(self) -> float:
        """Mean life, steps."""
        return float(self.alive.sum())

    @property
    def held(self) -> float:
        """Mean tokens of a request that is seen running."""
        return float(self.alive @ self.moments[0]) / self.mean

    def known(self, age: int) -> NDArray[np.float64]:
        """Return c(a), float64 (n,): the chance that a request of age a is there, for sight of that age."""
        if age < 0:
            raise InputError(f"the age of a sight is {age} steps; expected 0 or more")
        before = np.ones_like(self.alive)
        if age < before.size:
            before[age:] = self.alive[: before.size - age]
        return self.alive / before

    def unseen(self, arrivals: float, age: int) -> Unseen:
        """Return what a router with sight of that age cannot know of a load, for so many arrivals a worker and step."""
        known = self.known(age)
        each = arrivals * self.alive * (1 - known)
        return Unseen(
            float(each.sum()), float(each @ self.moments[1]), float(each @ ((1 - 2 * known) * self.moments[2]))
        )

    def random(self, arrivals: float) -> Unseen:
        """Return the spread of a load under a random split of Poisson arrivals: nothing is known."""
        each = arrivals * self.alive
        return Unseen(float(each.sum()), float(each @ self.moments[1]), float(each @ self.moments[2]))


@dataclass(frozen=True, slots=True)
class Unseen:
    """What is unknown of the load of one worker.

    Parameters
    ----------
    requests
        Variance of the number of its requests.
    variance, third
        Of its tokens, squared; the third cumulant, cubed.
    """

    requests: float
    variance: float
    third: float

    def imbalance(self, G: int) -> float:
        """Return what `G` workers alike leave if all that is known is level, tokens; skewness included.

        Where hardly a request ends unseen the form with skewness falls below zero; no imbalance does.
        """
        return self._largest(G, expected_maximum(G), self.skewed(G))

    def least(self, G: int) -> float:
        """Return the least of any split of what `G` workers hide, tokens: one has all of it, the others nothing."""
        height = lone_maximum(G)
        return self._largest(G, math.sqrt(G) * height, height * float(special.ndtri(1 - 1 / G)) * self._lean)

    def skewed(self, G: int) -> float:
        """Return what skewness adds to the mean of the largest of `G` workers alike, tokens."""
        return self._lean * (expected_squared_maximum(G) - 1)

    @property
    def _lean(self) -> float:
        return self.third / (6 * self.variance) if self.variance > 0 else 0.0

    def _largest(self, G: int, height: float, skew: float) -> float:
        return max(0.0, G * (height * math.sqrt(self.variance) + skew)) if self.variance > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ReportedFleet:
    """An open fleet whose router sees reports: sight is 0 to period - 1 steps old, each as often.

    Parameters
    ----------
    G
        Number of workers.
    lives
        Of the requests.
    arrivals
        Requests a worker and step.
    period
        Steps between reports.
    """

    G: int
    lives: Lives
    arrivals: float
    period: int

    def __post_init__(self) -> None:
        if self.period < 1:
            raise InputError(f"the period of reports is {self.period} steps; expected at least 1")

    @property
    def unseen(self) -> list[Unseen]:
        """What is unknown of a load at each age of a sight, from 0."""
        return [self.lives.unseen(self.arrivals, age) for age in range(self.period)]

    def floor(self) -> float:
        """Return the least mean imbalance of any router, tokens."""
        return float(np.mean([each.least(self.G) for each in self.unseen]))

    def alike(self) -> float:
        """Return the least mean imbalance of a router that keeps the unseen variances of workers equal, tokens."""
        return float(np.mean([each.imbalance(self.G) for each in self.unseen]))

    def herd(self) -> float:
        """Return the mean imbalance where each window of arrivals goes whole to the worker whose turn it is, tokens."""
        lives, cycle = self.lives, self.G * self.period
        length = -(-(lives.alive.size + cycle) // cycle) * cycle
        one = np.zeros(length)
        one[: lives.alive.size] = lives.alive * lives.moments[0]
        # x steps after its window began a worker holds the ages x, x - 1, ..., x - period + 1 of it.
        window = np.convolve(one, np.ones(self.period))[:length]
        by_step = self.arrivals * self.G * window.reshape(-1, cycle).sum(axis=0)  # since the worker's last window began
        by_phase = by_step.reshape(self.G, self.period)
        return float(np.mean(self.G * by_phase.max(axis=0) - by_phase.sum(axis=0)))


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


def random_waiting(arrivals: float, p: float, B: int) -> float:
    """Return the mean number that waits at a worker with B slots and Poisson arrivals of its own, exactly.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
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
