"""Routers of the independent serving engine: each has queueing of its own.

An immediate rule binds a request to a worker at the first boundary after its arrival; the request then waits in that
worker's FIFO queue. A pooled rule keeps all waiting requests together and binds one when a slot is free.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np


class Workers:
    """What a router sees of the workers.

    Parameters
    ----------
    G, B
        Workers, and slots of each.
    rng
        Random numbers of rules and ties.
    """

    def __init__(self, G: int, B: int, rng: np.random.Generator) -> None:
        self.B = B
        self.rng = rng
        self.load = np.zeros(G, dtype=np.int64)  # tokens of running requests
        self.active = np.zeros(G, dtype=np.int64)  # requests that get a token in a step
        self.held = np.zeros(G, dtype=np.int64)  # slots in use: running and paused requests
        self.queued = np.zeros(G, dtype=np.int64)
        self.queued_tokens = np.zeros(G, dtype=np.int64)
        self.up = np.ones(G, dtype=bool)
        self.bound = 0  # requests bound so far by an immediate rule


Choice = Callable[[Workers, np.ndarray], int]


def least(values: np.ndarray, among: np.ndarray) -> int:
    """The worker of `among` with the least value; of several the first."""
    return int(among[values[among].argmin()])


def least_at_random(values: np.ndarray, among: np.ndarray, rng: np.random.Generator) -> int:
    """The same; of several any."""
    own = values[among]
    best = among[own == own.min()]
    return int(best[rng.integers(len(best))])


def in_turn(workers: Workers, among: np.ndarray) -> int:
    """Round robin."""
    return int(among[workers.bound % len(among)])


def at_random(workers: Workers, among: np.ndarray) -> int:
    """Any worker alike."""
    return int(among[workers.rng.integers(len(among))])


def fewest_requests(workers: Workers, among: np.ndarray) -> int:
    """Fewest requests, running or queued; of several any."""
    return least_at_random(workers.held + workers.queued, among, workers.rng)


def fewest_tokens(workers: Workers, among: np.ndarray) -> int:
    """Fewest tokens, running or queued."""
    return least(workers.load + workers.queued_tokens, among)


def most_free_slots(workers: Workers, among: np.ndarray) -> int:
    """Most free slots; of several the first."""
    return least(workers.held, among)


def fewest_running(workers: Workers, among: np.ndarray) -> int:
    """Fewest running requests; of several any."""
    return least_at_random(workers.active, among, workers.rng)


def lightest(workers: Workers, among: np.ndarray) -> int:
    """Fewest resident tokens."""
    return least(workers.load, among)


class Immediate:
    """A router that binds at arrival, with a FIFO queue at each worker.

    Parameters
    ----------
    workers
        State that the rule reads; its queues are written.
    prompt
        Tokens of each request.
    choose
        The rule.
    """

    def __init__(self, workers: Workers, prompt: np.ndarray, choose: Choice) -> None:
        self.workers, self.prompt, self.choose = workers, prompt, choose
        self.queues: list[deque[int]] = [deque() for _ in workers.held]
        self.allowed: np.ndarray | None = None  # bool (N, G), which workers serve each request; None: all serve all

    def take(self, request: int) -> None:
        """Bind a request that has arrived to one of the workers that are up."""
        workers = self.workers
        serves = workers.up if self.allowed is None else workers.up & self.allowed[request]
        worker = self.choose(workers, np.flatnonzero(serves))
        workers.bound += 1
        workers.queued[worker] += 1
        workers.queued_tokens[worker] += self.prompt[request]
        self.queues[worker].append(request)

    def starts(self, ready: np.ndarray) -> Iterator[tuple[int, int]]:
        """Requests that start now and their workers, which are among `ready`."""
        workers = self.workers
        for worker in np.flatnonzero(ready & (workers.queued > 0) & (workers.held < workers.B)).tolist():
            while self.queues[worker] and workers.held[worker] < workers.B:
                request = self.queues[worker].popleft()
                workers.queued[worker] -= 1
                workers.queued_tokens[worker] -= self.prompt[request]
                yield request, worker


class Pooled:
    """A router with one pool, which binds when a slot is free.

    Parameters
    ----------
    workers
        State that the rule reads.
    prompt
        Tokens of each request.
    choose
        The rule for the worker.
    largest_first
        Whether the largest prompt of the pool goes first; otherwise the oldest request does.
    """

    def __init__(self, workers: Workers, prompt: np.ndarray, choose: Choice, largest_first: bool = False) -> None:
        self.workers, self.prompt, self.choose, self.largest_first = workers, prompt, choose, largest_first
        self.pool: list[tuple[int, int]] = []
        self.taken = 0

    def take(self, request: int) -> None:
        """Put a request that has arrived into the pool."""
        self.taken += 1
        heapq.heappush(self.pool, (-int(self.prompt[request]) if self.largest_first else self.taken, request))

    def starts(self, ready: np.ndarray) -> Iterator[tuple[int, int]]:
        """Requests that start now and their workers, which are among `ready`."""
        workers = self.workers
        while self.pool:
            among = np.flatnonzero(ready & (workers.held < workers.B))
            if not len(among):
                return
            yield heapq.heappop(self.pool)[1], self.choose(workers, among)


IMMEDIATE = {"round-robin": in_turn, "random": at_random, "jsq": fewest_requests, "jsq-load": fewest_tokens}
POOLED = {"fcfs": most_free_slots, "jsq-pooled": fewest_running, "lightest": lightest, "max-min": lightest}
RULES = (*IMMEDIATE, *POOLED)


def make_router(rule: str, workers: Workers, prompt: np.ndarray) -> Immediate | Pooled:
    """The router of a rule of `RULES`."""
    if rule in IMMEDIATE:
        return Immediate(workers, prompt, IMMEDIATE[rule])
    return Pooled(workers, prompt, POOLED[rule], largest_first=rule == "max-min")
