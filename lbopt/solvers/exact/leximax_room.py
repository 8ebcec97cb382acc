"""The least envelope that keeps the optimal cost.

The optimal cost is G M - (loads before) - T, so an optimum with a smaller envelope M admits G tokens fewer for each
unit. The exact search is asked again, for anything of that cost under smaller and smaller envelopes, until it proves
that there is none.

What is left to decide once envelope and admitted tokens are fixed: which assignment of that sum is the most even.

Every assignment that admits the same tokens under the same envelope costs the same. Where these are the most tokens
that can be admitted, also the set of requests is fixed, and all others are forgotten.
"""

from __future__ import annotations

import numpy as np

from lbopt.kernels.leximax.even import compared, even_out, water
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, NONE, OPEN, PROVED, Search, Step
from lbopt.model import StepProblem, loads_after, objective
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.search import SLICE, ExactAnswer

#: Beyond so many slots of a worker the search by prices takes too long to be asked again and again.
MOST_SLOTS = 16

#: Prices that a search hands over to the next one, the newest.
_HANDED_OVER = 64


def least_envelope(
    problem: StepProblem, decision: Decision, answer: ExactAnswer, optimum: IntArray, limits: Limits
) -> tuple[IntArray, str]:
    """Return an assignment of the cost of `optimum` with the least largest load, and "done" where that is proved.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    decision
        The same in the terms of the search.
    optimum
        int64 (N,), an assignment of proved cost.
    """
    if problem.num_admitted == problem.num_requests:  # T is fixed, and M with it
        return optimum, "done"
    cost = objective(problem, optimum)
    floor, envelope = _least_possible(decision, cost), int(loads_after(problem, optimum).max())
    last = envelope - 1  # where nothing cheaper has been found so far, there is rarely anything
    search = decision.start(cost + 1)
    hand_over(search, answer)
    while floor < envelope:
        if problem.slots.max() > MOST_SLOTS:
            return optimum, "stuck"
        answered = limits.stopped() or _asked(decision, search, (floor, last), cost, limits)
        if answered == "found":
            optimum = decision.handed_out(search)
            envelope = int(loads_after(problem, optimum).max())
        elif answered == "none":
            floor = last + 1
        else:
            return optimum, answered
        last = (floor + envelope - 1) // 2
    return optimum, "done"


def _asked(decision: Decision, search: Search, among: tuple[int, int], cost: int, limits: Limits) -> str:
    """Look for something of at most `cost` with an envelope in the range `among`.

    Returns "found", "none" where that is proved, "stuck", or what `limits` say; `search` has what was found.
    """
    _open_ranges(search, *among, cost + 1)
    state, ending = OPEN, None
    while state == OPEN and ending is None:
        state = decision.advance(search, SLICE, limits.deadline())
        if state == OPEN:
            ending = limits.stopped() or ("time" if search.known.expired else None)
    if search.known.cost <= cost:
        return "found"
    return ending or ("none" if state == PROVED else "stuck")


def hand_over(search: Search, answer: ExactAnswer) -> None:
    """Start `search` with the prices of an earlier one."""
    log = answer.closures
    if log is None:
        return
    rows = np.flatnonzero(log.envelopes >= 0)[-_HANDED_OVER:]
    kept, K = rows.size, log.prices.shape[1]
    search.bank[:kept, :K] = log.prices[rows]
    search.bank_at[:kept] = log.envelopes[rows]
    search.known.prices = search.known.newest = kept


def _least_possible(decision: Decision, cost: int) -> int:
    """Return an envelope below which there is nothing of this cost."""
    step = decision.step
    least_tokens = int(np.sort(decision.sizes)[: decision.admitted].sum())
    by_cost = -(-(cost + step.total + least_tokens) // step.workers)
    return max(step.heaviest, int((step.load + step.sums[step.slots]).max()), by_cost)


def _open_ranges(search: Search, floor: int, last: int, cost: int) -> None:
    """Ask for anything cheaper than `cost` with an envelope in floor..last: ranges that double from the top down."""
    count, width = 0, 1
    while last >= floor:
        first = max(floor, last - width + 1)
        search.ranges[count].fill(0)
        search.ranges[count].first, search.ranges[count].last, search.ranges[count].beyond = first, last, last
        last = first - 1
        width *= 2
        count += 1
    search.known.cost, search.known.ranges, search.known.bound = cost, count, 0
    search.pricing.fill(0)


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
