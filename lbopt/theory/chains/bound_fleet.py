"""A saturated fleet in which each worker has a queue of requests that were bound to it before they start.

In every step running requests grow by a token and some end. The router binds as many new requests to each worker as
ended there, to the end of its queue, so that every queue keeps its length; then each free slot takes the head of its
worker's queue, and loads are read. With a queue of zero the router fills the free slots itself.

The router is free in which of the new requests goes where: the largest first, each to the worker with the least
expected load. "levelled" expects what the load will be when the request starts, W = Q/(pB) steps on: q^W of what runs
now, and q^(W - t) of a request that starts in t steps. "present" counts tokens as they are, running and queued.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.theory.laws.stale_binding import BoundQueues

RULES = ("levelled", "present")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundFleet(BoundQueues):
    """The fleet, to be run."""

    def imbalance(self, rule: str, steps: int, burn_in: int, seed: int) -> NDArray[np.float64]:
        """Return the imbalance of every step after the burn-in, float64 (steps,), tokens.

        Parameters
        ----------
        rule
            One of `RULES`.
        steps
            Steps that are read.
        burn_in
            Steps before.
        seed
            Of the draws.
        """
        draw = np.random.default_rng([seed, RULES.index(rule)])
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
