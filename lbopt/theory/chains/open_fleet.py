"""Fleets whose router sees reports of every T steps: open ones, saturated ones with queues, and a pool's slots.

An open fleet whose router sees reports of every T steps.

Requests arrive by Poisson's law. Each is sent at once, starts where it is sent, holds its prompt and a token more in
every step, and leaves after its output. In a step ages grow, requests leave, a report is made if it is time, arrivals
are sent, and loads are read. Rules:

* "random": a worker by chance;
* "blind": the least loaded by the last report;
* "power-of-two": the less loaded, by the last report, of two drawn with replacement;
* "counted": the least loaded by the last report and the prompts that were sent since;
* "levelled": the least by what is expected now of the requests that were reported and of those sent since, each with
  the chance that a request which lived so long lives on until now;
* "numbers": the fewest requests, expected in the same way;
* "segregated": as "levelled", but large prompts, above the mean that a token sees, go to the first worker while it has
  room below the level of all. It is kept lower by what hides in it, so that it is the fullest one time in G.

With `slots` a worker runs so many; later ones wait in its queue, first come, first served.

Slots that a pool fills when a report shows them free: reports of every T steps, requests without end.

A saturated fleet in which each worker has a queue of requests that were bound to it before they start.

In every step running requests grow by a token and some end. The router binds as many new requests to each worker as
ended there, to the end of its queue, so that every queue keeps its length; then each free slot takes the head of its
worker's queue, and loads are read. With a queue of zero the router fills the free slots itself.

The router is free in which of the new requests goes where: the largest first, each to the worker with the least
expected load. "levelled" expects what the load will be when the request starts, W = Q/(pB) steps on: q^W of what runs
now, and q^(W - t) of a request that starts in t steps. "present" counts tokens as they are, running and queued.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lbopt.theory.laws.slot_law import PromptLaw
from lbopt.theory.laws.stale import BoundQueues, Lives

RULES = ("random", "blind", "power-of-two", "counted", "levelled", "numbers", "segregated")

#: Rules that expect what became of the requests since the report.
_EXPECTING = ("levelled", "numbers", "segregated")


@dataclass(frozen=True, slots=True)
class Requests:
    """What arrives: prompts and outputs that are drawn with replacement, or geometric outputs whatever the prompt.

    Parameters
    ----------
    prompt, share
        Tokens, int64 (n,), and how often each comes, float64 (n,).
    output
        int64 (n,), tokens, of the same requests; None for geometric ones.
    p
        Probability that a request ends in a step, of geometric ones.
    lives
        Their law.
    """

    prompt: NDArray[np.int64]
    share: NDArray[np.float64]
    output: NDArray[np.int64] | None
    p: float
    lives: Lives

    @classmethod
    def geometric(cls, p: float, prompts: PromptLaw) -> Requests:
        """Return requests that end with probability `p` in every step, whatever the prompt."""
        share = np.array([float(share) for share in prompts.shares])
        lives = Lives.geometric(p, prompts)
        return cls(np.array(prompts.lengths, np.int64), share / share.sum(), None, p, lives)

    @classmethod
    def observed(cls, prompt: NDArray[np.int64], output: NDArray[np.int64]) -> Requests:
        """Return these requests, each as often."""
        return cls(prompt, np.full(prompt.size, 1 / prompt.size), output, 0.0, Lives.observed(prompt, output))

    @property
    def seen_by_tokens(self) -> float:
        """Mean prompt that a token of a prompt sees, E[S^2] / E[S]."""
        return float(self.share @ self.prompt.astype(np.float64) ** 2 / (self.share @ self.prompt))

    def drawn(self, count: int, draw: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return prompts and outputs of so many requests, int64 (count,) each."""
        if self.output is None:
            return draw.choice(self.prompt, count, p=self.share), draw.geometric(self.p, count)
        which = draw.integers(0, self.prompt.size, count)
        return self.prompt[which], self.output[which]


@dataclass(frozen=True, slots=True)
class OpenRun:
    """What was read in every step after the burn-in.

    Parameters
    ----------
    imbalance
        float64 (steps,), tokens.
    waiting
        float64 (steps,): requests that wait in queues of workers, a worker.
    doubt
        float64 (steps, G): variance of a worker's load to the knowledge of a router that sees sizes, tokens squared;
        workers that start each request at once.
    """

    imbalance: NDArray[np.float64]
    waiting: NDArray[np.float64]
    doubt: NDArray[np.float64]


@dataclass(slots=True)
class _View:
    """Requests that the router takes for running: those of the last report, and those sent since.

    Parameters
    ----------
    worker, prompt, age, seen
        int64 (n,): where, tokens, steps since the start, and of those how many were seen.
    """

    worker: NDArray[np.int64]
    prompt: NDArray[np.int64]
    age: NDArray[np.int64]
    seen: NDArray[np.int64]

    def expected(self, G: int, alive: NDArray[np.float64], weigh: bool) -> NDArray[np.float64]:
        """Return what is expected of each worker, float64 (G,): tokens, or requests where nothing is weighed."""
        chance = self._chance(alive)
        weight = chance * (self.prompt + self.age) if weigh else chance
        return np.bincount(self.worker, weight, G).astype(np.float64)

    def doubt(self, G: int, alive: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of each worker's load, float64 (G,), tokens squared."""
        chance = self._chance(alive)
        weight = chance * (1 - chance) * (self.prompt + self.age).astype(np.float64) ** 2
        return np.bincount(self.worker, weight, G).astype(np.float64)

    def _chance(self, alive: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the chance that each request is still there, float64 (n,)."""
        last = alive.size - 1
        there = np.where(self.age > last, 0.0, alive[np.minimum(self.age, last)])
        return np.asarray(there / alive[np.minimum(self.seen, last)])

    def add(self, worker: NDArray[np.int64], prompt: NDArray[np.int64]) -> None:
        """Add requests that are sent now."""
        none = np.zeros_like(worker)
        self.worker, self.prompt = np.concatenate((self.worker, worker)), np.concatenate((self.prompt, prompt))
        self.age, self.seen = np.concatenate((self.age, none)), np.concatenate((self.seen, none))


@dataclass(frozen=True, kw_only=True)
class OpenFleet:
    """The fleet.

    Parameters
    ----------
    G
        Number of workers.
    arrivals
        Mean arrivals a worker and step.
    requests
        What arrives.
    period
        Steps between reports.
    slots
        Requests that a worker runs at once; None = all of its.
    """

    G: int
    arrivals: float
    requests: Requests
    period: int
    slots: int | None = None

    @cached_property
    def burn_in(self) -> int:
        """Steps after which fewer than a thousandth of a request of the start is left."""
        alive = self.requests.lives.alive * self.G * self.arrivals * self.requests.lives.mean
        return (
            2 * int(np.searchsorted(-alive, -1e-3)) if self.slots is not None else int(np.searchsorted(-alive, -1e-3))
        )

    def run(self, rule: str, steps: int, seed: int) -> OpenRun:
        """Run the rule for the burn-in, and then `steps` that are read.

        Parameters
        ----------
        rule
            One of `RULES`.
        steps
            Steps that are read.
        """
        draw = np.random.default_rng([seed, RULES.index(rule)])
        G, alive = self.G, self.requests.lives.alive
        worker, prompt, age, left = np.zeros((4, 0), np.int64)
        running = np.zeros(0, np.bool_)
        large = self.requests.seen_by_tokens
        imbalance, waiting = np.zeros((2, steps))
        doubt = np.zeros((steps, G))
        seen: NDArray[np.float64] = np.zeros(G)
        view = _View(worker, prompt, age, age)
        for k in range(-self.burn_in, steps):
            age, left, view.age = age + running, left - running, view.age + 1
            kept = left > 0
            worker, prompt, age, left, running = worker[kept], prompt[kept], age[kept], left[kept], running[kept]
            if (k + self.burn_in) % self.period == 0:
                seen = np.bincount(worker, prompt + age, G).astype(np.float64)
                view = _View(worker, prompt, age, age)
            come, output = self.requests.drawn(int(draw.poisson(self.arrivals * G)), draw)
            load = view.expected(G, alive, rule != "numbers") if rule in _EXPECTING else seen
            if rule == "segregated":
                chosen = _segregated(come, load, view.doubt(G, alive), come > large)
            else:
                chosen = _chosen(rule, np.ones_like(come) if rule == "numbers" else come, load, draw)
            if rule == "counted":
                seen = seen + np.bincount(chosen, come, G)
            view.add(chosen, come)
            none = np.zeros_like(come)
            worker, prompt = np.concatenate((worker, chosen)), np.concatenate((prompt, come))
            age, left = np.concatenate((age, none)), np.concatenate((left, output))
            running = self._running(worker, np.concatenate((running, none.astype(np.bool_))))
            if k >= 0:
                held = np.bincount(worker[running], (prompt + age)[running], G)
                imbalance[k] = G * held.max() - held.sum()
                waiting[k] = (worker.size - np.count_nonzero(running)) / G
                doubt[k] = view.doubt(G, alive)
        return OpenRun(imbalance, waiting, doubt)

    def _running(self, worker: NDArray[np.int64], running: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which requests run: those of a worker that came first. Running ones came before those that wait."""
        if self.slots is None:
            return np.ones_like(running)
        free = self.slots - np.bincount(worker[running], minlength=self.G)
        found = running.copy()
        for i in np.flatnonzero(~running):
            if free[worker[i]] > 0:
                found[i] = True
                free[worker[i]] -= 1
        return found


def _chosen(
    rule: str, tokens: NDArray[np.int64], load: NDArray[np.float64], draw: np.random.Generator
) -> NDArray[np.int64]:
    """Return the worker of each arrival, int64 (n,), by what the router sees of the loads, float64 (G,)."""
    G, count = load.size, tokens.size
    if rule == "random":
        return draw.integers(0, G, count)
    if rule == "blind":
        return np.full(count, int(load.argmin()))
    if rule == "power-of-two":
        one, other = draw.integers(0, G, (2, count))
        lower: NDArray[np.int64] = np.where(load[one] <= load[other], one, other)
        return lower
    return _levelled(tokens, load)[0]


def _levelled(tokens: NDArray[np.int64], load: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the worker of each arrival, int64 (n,), each sent to the least load, and the loads with them."""
    heap = [(float(each), g) for g, each in enumerate(load)]
    heapq.heapify(heap)
    chosen = np.zeros(tokens.size, np.int64)
    for i, weight in enumerate(tokens.tolist()):
        least, g = heap[0]
        chosen[i] = g
        heapq.heapreplace(heap, (least + weight, g))
    after = np.zeros(load.size)
    after[[g for _, g in heap]] = [each for each, _ in heap]
    return chosen, after


def _segregated(
    tokens: NDArray[np.int64], load: NDArray[np.float64], doubt: NDArray[np.float64], large: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the worker of each arrival, int64 (n,): large ones to the first while it has room, small ones even it."""
    load = load.copy()
    load[0] += float(special.ndtri(1 - 1 / load.size)) * math.sqrt(doubt[0])
    level = (load.sum() + tokens.sum()) / load.size
    chosen = np.zeros(tokens.size, np.int64)
    first = large & (load[0] + np.cumsum(np.where(large, tokens, 0)) <= level)
    load[0] += tokens[first].sum()
    rest = large & ~first
    others, load[1:] = _levelled(tokens[rest], load[1:])
    chosen[rest] = others + 1
    chosen[~large], _ = _levelled(tokens[~large], load)
    return chosen


def pool_by_report(requests: Requests, slots: int, period: int, steps: int, seed: int) -> NDArray[np.float64]:
    """Return the share of busy slots in every step, float64 (steps,).

    Parameters
    ----------
    period
        Steps between reports; the first is in step 0.
    steps
        Steps that are read.
    """
    draw = np.random.default_rng(seed)
    left = np.zeros(slots, np.int64)
    busy = np.zeros(steps)
    for k in range(steps):
        left = np.maximum(left - 1, 0)
        if k % period == 0:
            free = np.flatnonzero(left == 0)
            left[free] = requests.drawn(free.size, draw)[1]
        busy[k] = np.count_nonzero(left) / slots
    return busy


BOUND_RULES = ("levelled", "present")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundFleet(BoundQueues):
    """The fleet, to be run."""

    def imbalance(self, rule: str, steps: int, burn_in: int, seed: int) -> NDArray[np.float64]:
        """Return the imbalance of every step after the burn-in, float64 (steps,), tokens.

        Parameters
        ----------
        rule
            One of `BOUND_RULES`.
        steps
            Steps that are read.
        burn_in
            Steps before.
        seed
            Of the draws.
        """
        draw = np.random.default_rng([seed, BOUND_RULES.index(rule)])
        lengths = np.array(self.prompts.lengths)
        shares = np.array([float(share) for share in self.prompts.shares])
        shares /= shares.sum()
        q, rate = 1 - self.p, self.p * self.B
        wait = self.queue / rate
        place = np.arange(self.queue)
        now, later = (q**wait, q ** ((self.queue - place) / rate)) if rule == "levelled" else (1.0, np.ones(self.queue))
        size = draw.choice(lengths, (self.G, self.B), p=shares)
        queues = [deque(draw.choice(lengths, self.queue, p=shares).tolist()) for _ in range(self.G)]
        found = np.zeros(steps)
        for k in range(-burn_in, steps):
            ended = draw.random(size.shape) < self.p
            size = np.where(ended, 0, size + 1)
            free = ended.sum(axis=1)
            expected = now * size.sum(axis=1)
            if self.queue:
                expected = expected + np.array([np.asarray(each) @ later for each in queues])
            self._bind(draw.choice(lengths, int(free.sum()), p=shares), free, expected, queues)
            for g in range(self.G):
                size[g, ended[g]] = [queues[g].popleft() for _ in range(free[g])]
            if k >= 0:
                load = size.sum(axis=1)
                found[k] = self.G * load.max() - load.sum()
        return found

    def _bind(
        self,
        prompt: NDArray[np.int64],
        free: NDArray[np.int64],
        expected: NDArray[np.float64],
        queues: list[deque[int]],
    ) -> None:
        """Append each request to a queue, changed in place: the largest first, to the least load that takes one yet."""
        left, load = free.tolist(), expected.tolist()
        for tokens in np.sort(prompt)[::-1].tolist():
            g = min((g for g in range(self.G) if left[g]), key=load.__getitem__)
            queues[g].append(tokens)
            left[g] -= 1
            load[g] += tokens
