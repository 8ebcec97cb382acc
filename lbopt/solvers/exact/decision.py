"""A step problem in the terms of the search.

Where fewer requests wait than there are slots, empty requests of size 0 fill the others; from then on every slot is
filled by exactly one request, and which requests are admitted follows.
"""

from __future__ import annotations

import numpy as np

from lbopt.kernels.deadline import ENDLESS, NEVER
from lbopt.kernels.search.decision import (
    choose,
    extreme_tokens,
    group_requests,
    hand_out,
    longest_first,
    set_sums,
)
from lbopt.kernels.search.envelopes import advance
from lbopt.kernels.search.open_ranges import begin
from lbopt.kernels.search.state import Search, Step
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.exact.closures import Closures
from lbopt.solvers.exact.workspace import workspace

#: Largest magnitude that an evaluation may reach (prices times scale, summed over all requests).
LARGEST = 1 << 60

#: Prices that a search hands over to the next one.
_KEPT = 64

#: Prices are rounded to 1/4096 token where magnitudes allow it.
FINEST_SCALE = 4096


class Decision:
    """A step problem in the terms of the search; `scale` is 0 where its numbers are too large for it."""

    def __init__(self, problem: StepProblem) -> None:
        self.loads, self.slots = problem.base[:, 0], problem.slots
        self.num_requests = problem.num_requests
        missing = max(0, problem.num_free_slots - problem.num_requests)
        sizes, must = problem.work[:, 0], problem.must_admit.astype(np.int64)
        if missing:
            sizes = np.concatenate([sizes, np.zeros(missing, dtype=np.int64)])
            must = np.concatenate([must, np.zeros(missing, dtype=np.int64)])
        self.sizes, self.must = np.ascontiguousarray(sizes), must
        self.admitted = problem.num_free_slots
        self.order = np.lexsort((self.must, self.sizes)) if self.must.any() else np.argsort(self.sizes, kind="stable")
        v, n, forced = np.zeros((3, self.sizes.size), dtype=np.int64)
        K = group_requests(self.sizes, self.must, self.order, v, n, forced)
        # Where all requests are admitted, none has to be forced.
        self.forced = int(self.must.sum()) if self.admitted < self.sizes.size else 0
        open_workers = np.flatnonzero(self.slots)
        self.workers = open_workers[np.argsort(self.slots[open_workers], kind="stable")]
        load, slots = self.loads[self.workers], self.slots[self.workers]
        heaviest = int(self.loads.max())
        bonus = 2 * (heaviest + int(v[K - 1])) if self.forced else 0
        magnitude = (
            sum(self.sizes.tolist())
            + 2 * self.loads.size * (heaviest + int(slots.max()) * int(v[K - 1]))
            + 2 * bonus * (self.forced + self.admitted)
        )
        self.scale = FINEST_SCALE
        while self.scale > 0 and self.scale * magnitude > LARGEST:
            self.scale //= 2
        sums = np.zeros(int(slots.max()) + 1, dtype=np.int64)
        set_sums(v[:K], n[:K], sums)
        self.step = Step(
            v=v[:K],
            n=n[:K],
            floor=forced[:K] * (-bonus * self.scale if self.forced else 0),
            load=load,
            slots=slots,
            rank=np.lexsort((-load, slots)),
            sums=sums,
            workers=self.loads.size,
            total=int(self.loads.sum()),
            heaviest=heaviest,
            scale=self.scale,
            most=int(extreme_tokens(self.sizes, self.must, self.order, self.admitted, True)),
            least=int(extreme_tokens(self.sizes, self.must, self.order, self.admitted, False)),
            forced=self.forced,
        )

    def first_assignment(self) -> tuple[IntArray, int]:
        """Return the best of three cheap assignments, and its cost."""
        G, N = self.loads.size, self.sizes.size
        now, room = np.zeros((2, G), dtype=np.int64)
        chosen = np.zeros(self.admitted, dtype=np.int64)
        assignments = np.zeros((3, N), dtype=np.int64)
        flags = np.zeros(N, dtype=np.int64)
        rules = 1 if self.admitted == N else 3
        costs = []
        for rule in range(rules):
            choose(self.order, self.must, self.admitted, rule, flags, chosen)
            costs.append(longest_first(self.loads, self.slots, self.sizes, chosen, assignments[rule], now, room))
        best = int(np.argmin(costs))
        return assignments[best, : self.num_requests], int(costs[best])

    def start(self, cost: int, seed: int = 0, most: int = ENDLESS, bound: int = 0) -> Search:
        """Return a search for something cheaper than `cost`; other seeds let it draw otherwise.

        Beyond `most` units of work it cannot go on. That no cost is below `bound` is known.

        Parameters
        ----------
        cost, bound
            Of an assignment that is known, and of none below; tokens.
        """
        search, self.masters = workspace(self.step.load.size, self.step.v.size, int(self.step.slots[-1]))
        search.known.cost, search.known.seed, search.known.most = cost, seed, most
        begin(self.step, search, -(-(bound + self.step.total + self.step.least) // self.step.workers))
        return search

    def advance(self, search: Search, budget: int, deadline: int = NEVER) -> int:
        """Go on with a search for about so many microseconds; PROVED, OPEN or FULL.

        Parameters
        ----------
        search
            The search, which changes in place.
        budget
            About microseconds.
        deadline
            Nanoseconds, see `lbopt.kernels.deadline`; where it has passed the search cannot go on.
        """
        search.known.deadline = deadline
        return int(advance(self.step, search, self.masters, budget))

    def closures(self, search: Search, bound: int) -> Closures | None:
        """Return why no cost is below `bound`, as a search that has proved it logged it."""
        return Closures.of(self.step, search, self.masters.tree, self.workers, bound)

    def newest_prices(self, search: Search) -> tuple[IntArray, IntArray]:
        """Return the newest prices that ranges were given, int64 (P, K), and the envelopes they were found at, (P,)."""
        found = search.bank_at[: min(int(search.known.prices), search.bank_at.size)]
        kept = np.flatnonzero(found >= 0)[-_KEPT:]
        return search.bank[kept, : self.step.v.size], search.bank_at[kept]

    def handed_out(self, search: Search) -> IntArray:
        """Return the worker of each request in the best assignment of `search`."""
        open_worker = np.full(self.loads.size, -1, dtype=np.int64)
        open_worker[self.workers] = np.arange(self.workers.size)
        assignment = np.zeros(self.num_requests, dtype=np.int64)
        scratch = np.zeros(self.step.v.size, dtype=np.int64)
        if not hand_out(self.step, search.answer, self.order, scratch, open_worker, assignment):
            raise AssertionError("the search answers with requests that do not exist: a defect of lbopt")
        return assignment
