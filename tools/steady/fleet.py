"""A fleet that is always busy, step by step: the quickest way to step problems as they occur in steady state.

Requests are drawn with replacement from the records of a trace, so there is always another one; the waiting pool is
filled up to `pool` requests before every decision. Order of a step (BF-IO, section 3): every running request grows by
one token, those that have run all their steps leave, the pool is filled up, the step problem is what the router then
sees, and a fixed rule admits and places. Two rules of admission shape the pool, and with it how hard the problems are
(the optimum of the first is small and hard to prove, that of the second large and easy):

* "rich": the oldest U are admitted, so that the pool is a fresh sample of the trace;
* "leftover": the largest U are admitted, so that the pool is what was left over for long.

Admitted requests are placed largest first on the worker with the least load that has a free slot.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import StepProblem, Trace
from lbopt.model.integers import IntArray

SHAPES = ("rich", "leftover")


class SteadyFleet:
    """Workers, slots and a waiting pool that never runs dry.

    Parameters
    ----------
    trace
        Records to draw from: prompt and output tokens.
    workers, slots, pool
        G, B, and the number of requests that wait at each decision.
    shape
        "rich" or "leftover".
    seed
        Of ``numpy.random.default_rng``; equal arguments give equal problems on every machine.
    waiting
        Share of the free slots that requests wait for in a problem: the first ones of the pool, all of which are
        admitted; at least one waits. None: the whole pool waits.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        workers: int,
        slots: int,
        pool: int,
        shape: str,
        seed: int,
        waiting: float | None = None,
    ) -> None:
        for name, value in (("workers", workers), ("slots", slots), ("pool", pool)):
            if value < 1:
                raise InputError(f"{name} is {value}; expected at least 1")
        if shape not in SHAPES:
            raise InputError(f"the pool's shape is {shape!r}; expected {' or '.join(SHAPES)}")
        if waiting is not None and not 0 < waiting <= 1:
            raise InputError(f"waiting is {waiting}; expected a share of the free slots, above 0 and at most 1")
        self._waiting = waiting
        self._prompt = np.asarray(trace.prompt, dtype=np.int64)
        self._output = np.maximum(np.asarray(trace.output, dtype=np.int64), 1)
        self._rng = np.random.default_rng(seed)
        self._pool_target, self._shape = pool, shape
        self._size = np.zeros((workers, slots), dtype=np.int64)
        self._left = np.zeros((workers, slots), dtype=np.int64)  # steps still to run; 0 is a free slot
        self._pool = np.empty(0, dtype=np.int64)
        self._fill_pool()

    @property
    def free_slots(self) -> IntArray:
        """Free slots of each worker, int64 (G,)."""
        free: IntArray = (self._left == 0).sum(axis=1)
        return free

    def advance(self) -> None:
        """Admit and place by the fixed rule, then take one decode step and fill the pool up."""
        self._admit()
        busy = self._left > 0
        self._size[busy] += 1
        self._left[busy] -= 1
        self._size[self._left == 0] = 0
        self._fill_pool()

    def problem(self, horizon: int = 0) -> StepProblem:
        """Return what the router sees: every running request's end inside the window is known, new ones outlive it."""
        steps = np.arange(horizon + 1)
        alive = self._left[:, :, None] > steps
        base = ((self._size[:, :, None] + steps) * alive).sum(axis=1)
        slots = self.free_slots
        waiting = self._pool
        if self._waiting is not None:
            waiting = waiting[: max(1, int(self._waiting * int(slots.sum())))]
        return StepProblem(base=base, slots=slots, work=self._prompt[waiting][:, None] + steps)

    def problems(self, count: int, *, warm_up: int, spacing: int, horizon: int = 0) -> Iterator[StepProblem]:
        """Yield `count` problems, `spacing` steps apart; where no request can be admitted the next step is taken.

        Parameters
        ----------
        count
            Problems.
        warm_up
            Steps before the first.
        spacing
            Steps between two problems.
        horizon
            H of the problems.
        """
        for _ in range(warm_up):
            self.advance()
        for _ in range(count):
            for _ in range(spacing):
                self.advance()
            while not self.free_slots.any():
                self.advance()
            yield self.problem(horizon)

    def _fill_pool(self) -> None:
        missing = self._pool_target - self._pool.size
        self._pool = np.concatenate([self._pool, self._rng.integers(0, self._prompt.size, missing)])

    def _admit(self) -> None:
        free = self.free_slots
        count = min(int(free.sum()), self._pool.size)
        sizes = self._prompt[self._pool]
        by_size = np.argsort(-sizes, kind="stable")
        chosen = by_size[:count] if self._shape == "leftover" else by_size[by_size < count]
        lightest = [(int(load), g) for g, load in enumerate(self._size.sum(axis=1)) if free[g]]
        heapq.heapify(lightest)
        slot = {g: iter(np.flatnonzero(self._left[g] == 0).tolist()) for _, g in lightest}
        for place in chosen.tolist():
            load, g = heapq.heappop(lightest)
            request, b = self._pool[place], next(slot[g])
            self._size[g, b], self._left[g, b] = self._prompt[request], self._output[request]
            free[g] -= 1
            if free[g]:
                heapq.heappush(lightest, (load + int(sizes[place]), g))
        self._pool = np.delete(self._pool, chosen)
