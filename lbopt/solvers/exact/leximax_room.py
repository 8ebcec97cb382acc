"""What is left to decide once envelope and admitted tokens are fixed: which assignment of that sum is the most even.

Every assignment that admits the same tokens under the same envelope costs the same. Where these are the most tokens
that can be admitted, also the set of requests is fixed, and all others are forgotten.
"""

from __future__ import annotations

import numpy as np

from lbopt.kernels.leximax.even import compared, even_out, water
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, NONE, Step
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.leximax_envelope import hand_over
from lbopt.solvers.exact.search import ExactAnswer


class Room:
    """The open workers in the terms of `Decision`, and the most even assignment known.

    Attributes
    ----------
    step
        The decision in the words of the search. Its cost is (envelope) + (tokens wanted) - (tokens admitted): no more
        than the envelope where the tokens can be admitted.
    held
        int64 (W, Q): the classes that each worker takes, ascending, in its first slots[w] places.
    after
        int64 (W,): loads with them, tokens.
    total, tokens
        Sum of these loads, and of the sizes in them.
    """

    def __init__(self, decision: Decision, answer: ExactAnswer, assignment: IntArray, limits: Limits) -> None:
        whole = decision.step
        self._decision, self._limits = decision, limits
        slots = whole.slots
        held = _classes_held(decision, assignment)
        self.slots, self.base = slots, whole.load
        mine = np.arange(held.shape[1]) < slots[:, None]
        used = np.bincount(held[mine], minlength=whole.v.size)
        self.after = self.base + np.where(mine, whole.v[held], 0).sum(axis=1)
        self.total = int(self.after.sum())
        self.tokens = self.total - int(self.base.sum())
        n, floor, forced = whole.n.copy(), whole.floor.copy(), whole.forced
        self._kept = np.arange(whole.v.size)
        if self.tokens == whole.most:
            n = used
            floor[:] = 0
            forced = 0
            self._kept = np.flatnonzero(used)
        new_number = np.zeros(whole.v.size, dtype=np.int64)
        new_number[self._kept] = np.arange(self._kept.size)
        self.held = np.where(mine, new_number[held], 0)
        v, n, floor = whole.v[self._kept], n[self._kept], floor[self._kept]
        sums = np.full(int(slots.max()) + 1, -1)
        smallest = np.cumsum(np.repeat(v, np.minimum(n, slots.max()))[: slots.max()])
        sums[0], sums[1 : 1 + smallest.size] = 0, smallest
        numbers = (1, -self.tokens, whole.heaviest, whole.scale, whole.most, 0, forced)
        self.step = Step(v, n, floor, self.base, slots, whole.rank, sums, *numbers)
        self.search = decision.start(0)
        self.masters = decision.masters
        hand_over(self.search, answer)
        kept = min(int(self.search.known.prices), self.search.bank.shape[0])
        self._prices = [floor, *(self.search.bank[j, self._kept].copy() for j in range(kept))]
        self.search.known.prices = self.search.known.newest = 0

    @property
    def best(self) -> IntArray:
        """The loads of the open workers, largest first; int64 (W,)."""
        return np.sort(self.after)[::-1].copy()

    @property
    def scale(self) -> int:
        """Units of a price in a token."""
        return int(self.step.scale)

    def take(self, held: IntArray) -> None:
        """Keep another assignment, whose classes come in any order."""
        v = self.step.v
        for w, c in enumerate(self.slots.tolist()):
            self.held[w, :c] = np.sort(held[w, :c])
            self.after[w] = self.base[w] + v[self.held[w, :c]].sum()

    def even_out(self, limit: int) -> None:
        """Exchange requests between workers for up to so many steps."""
        even_out(self.step.v, self.slots, self.held, self.after, limit, self._limits.deadline())

    def window(self) -> IntArray:
        """Return the least and the largest load of each worker in an assignment that is no worse; int64 (2, W)."""
        pool = np.repeat(self.step.v, self.step.n)
        ascending = np.concatenate([[0], np.cumsum(pool)])
        low = self.base + ascending[self.slots]
        high = np.minimum(self.base + ascending[-1] - ascending[pool.size - self.slots], self.after.max())
        return np.stack([np.maximum(low, self.total - (high.sum() - high)), high])

    def even_loads(self) -> IntArray:
        """Return loads of the same sum that are at least as even as those of every assignment; int64 (W,)."""
        low, high = self.window()
        loads = np.zeros(self.slots.size, dtype=np.int64)
        if not water(low, high, self.total, loads):
            raise AssertionError("the assignment at hand is outside its own bounds: a defect of lbopt")
        return loads

    def is_even(self) -> bool:
        """Tell whether the assignment is as even as the bounds on each load allow."""
        return bool(compared(np.sort(self.even_loads()), self.best) >= 0)

    def best_prices(self) -> IntArray | None:
        """Return the known prices that leave least at the largest load, None for none; search.bound follows them."""
        bounds = [self._bound_at(prices) for prices in self._prices]
        if all(bound is None for bound in bounds):
            return None
        best = min((bound, -at) for at, bound in enumerate(bounds) if bound is not None)
        prices: IntArray = self._prices[-best[1]]
        self._bound_at(prices)
        return prices

    def _bound_at(self, prices: IntArray) -> int | None:
        """Return the bound on scale times the tokens under the largest load; None where the prices are of no use."""
        self.search.price[: prices.size] = prices
        self.search.known.deadline = self._limits.deadline()
        tokens = int(evaluate(self.step, self.search, int(self.after.max()), EXACT))
        useless = tokens == NONE or self.search.bound[: self.slots.size].min() <= NONE // 2
        return None if useless else tokens

    def handed_out(self) -> IntArray:
        """Return the worker of each request, -1 where it waits; int64 (N,)."""
        Q = self.held.shape[1]
        self.search.answer[: self.slots.size, :Q] = self._kept[self.held]
        return self._decision.handed_out(self.search)


def _classes_held(decision: Decision, assignment: IntArray) -> IntArray:
    """Return the classes that each open worker takes, ascending; empty requests, which come first, fill it up."""
    step = decision.step
    number = np.zeros(decision.sizes.size, dtype=np.int64)
    number[decision.order] = np.repeat(np.arange(step.v.size), step.n)
    held = np.zeros((step.slots.size, int(step.slots.max())), dtype=np.int64)
    for w, g in enumerate(decision.workers.tolist()):
        classes = np.sort(number[: decision.num_requests][assignment == g])
        held[w, step.slots[w] - classes.size : step.slots[w]] = classes
    return held
