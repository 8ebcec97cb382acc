"""Decisions in which every waiting request is admitted: the cost is that of the largest load, and nothing else.

Four methods take turns, each with its budget, which double from round to round (all budgets are work, not time, so the
course of the search does not depend on the machine):

pack     `packing.Packing`: largest first, then exchanges of slack; finds where requests are few for each worker.
fill     `balance.Balancing`: finds loads at the mean, rounded up; proves by reaching that bound.
few      `kernels.partition.few_workers`: enumeration, for few requests on few workers.
prices   the search of `lbopt.kernels.search`, which also serves where requests wait.

Where `few` can be used it goes first. Where workers get few requests `pack` does, and prices look for a better bound
after it. Else the order depends on how many placements at the bound are to be expected: with c_g requests on worker g
there are U! / prod c_g! placements, and G - 1 loads have to hit a window of slack + 1 tokens out of a few standard
deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from math import lgamma, log

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.partition.few_workers import BUDGET, FOUND, MOST_REQUESTS, MOST_WORKERS, NONE, OPEN, fits
from lbopt.kernels.search.state import OPEN as UNDECIDED
from lbopt.kernels.search.state import PROVED, Search
from lbopt.model import StepProblem, objective
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.balance import SLICE_MICROSECONDS, Balancing
from lbopt.solvers.exact.decision import Closures, Decision
from lbopt.solvers.exact.packing import Packing
from lbopt.solvers.exact.workspace import fits_memory

#: Budgets of the first round, about 20 ms each: work of `few`, and of `prices`, whose unit is larger.
_FEW, _PRICES = 2_000_000, 20_000

_FEW_PER_MICROSECOND = 100

#: Work of one call of `few`, some 2 s. It begins anew with each call.
_LONGEST_CALL = 200_000_000

#: Where the logarithm of the placements to expect at the bound is as large, prices are left alone for some rounds.
_PLENTY, _LATE = 20.0, 6

#: Requests for each worker up to which slack is exchanged, and up to which that goes first.
MOST_PACKED, FEW_PACKED = 12, 5

#: Requests in all from which on slack is exchanged only after some turns: a look takes time that grows with them.
MANY, LATER = 2_000, 6

#: Work of the price search between two looks at the clock.
_PRICE_SLICE = 5_000


#: Spends turn i in slices, and returns whether it has nothing left to try.
_Method = Callable[[int], Generator[None, None, bool]]


class SearchState:
    """The search as it goes on: the best assignment and bound so far, and where the bound comes from.

    `cost` and `bound` are in tokens; `work` is about in microseconds. `proof` is "elementary-bound", "certificate" or
    "enumeration", the last two being the search's own word.
    """

    def __init__(self, problem: StepProblem, limits: Limits) -> None:
        self.problem, self._limits = problem, limits
        base, sizes, self._unit = _reduced(problem)
        slots = np.minimum(problem.slots, sizes.size)  # "no limit" may be a number that cannot be added up
        self._given = base, slots, sizes
        self._workers, self._total = base.size, sum(base.tolist()) + sum(sizes.tolist())
        self._balancing = Balancing(base, slots, sizes, limits)
        self._first, self._filling = self._balancing.longest_first(), self._balancing.fill_to_targets()
        next(self._first, None)  # at once at the bound, or after the first swaps
        self.assignment = self._balancing.assignment
        self.cost, self.bound = objective(problem, self.assignment), self._cost_at(self._balancing.bound)
        self.proof, self.work = "elementary-bound", 0
        self._few: _FewWorkers | None = None
        self._packing: Packing | None = None
        self._decision: Decision | None = None
        self._search: Search | None = None

    @property
    def done(self) -> bool:
        """Whether cost and bound are equal."""
        return bool(self.cost == self.bound)

    def closures(self) -> Closures | None:
        """Return the log of the search by prices, None where there was none or it was too long to be kept."""
        if self._search is None or self._decision is None:
            return None
        return Closures.of(self._decision, self._search, self._decision.known(), self.bound)

    def run(self) -> Generator[SearchState, None, None]:
        """Search, and yield this object after each slice."""
        yield self
        for _ in self._first:
            self._take(self._balancing.assignment)
            self.work += SLICE_MICROSECONDS
            yield self
        self._take(self._balancing.assignment)
        if self.done:
            return
        methods, turn = self._methods(), 0
        while methods:
            for method in list(methods):
                exhausted = yield from _passed_on(method(turn), self)
                if self.cost <= self.bound:
                    yield self
                    return
                if exhausted:
                    methods.remove(method)
            turn = min(turn + 1, 30)

    def _methods(self) -> list[_Method]:
        """Return the methods that can be used, in the order of their turns."""
        base, slots, sizes = self._given
        share = sizes.size / max(1, int((slots > 0).sum()))
        expected = _expected_at_bound(base, slots, sizes, self._balancing.bound)
        late = _LATE if expected > _PLENTY and share > FEW_PACKED else 0
        methods: list[_Method] = [partial(self._by_prices, late)] if fits_memory(self.problem) else []
        methods.insert(0 if expected > 0 and share > FEW_PACKED else 1, self._fill)
        if share <= MOST_PACKED:
            methods.insert(0 if share <= FEW_PACKED else 1, self._pack)
        self._few = _FewWorkers.of(base, slots, sizes, self._balancing.bound, self._balancing.max_load)
        if self._few is not None:
            methods.insert(0, self._enumerate)
        return methods

    def _cost_at(self, largest: int) -> int:
        return int(self._unit * (self._workers * largest - self._total))

    def _take(self, assignment: IntArray) -> None:
        """Keep an assignment that costs less than the best one."""
        value = objective(self.problem, assignment)
        if value < self.cost:
            self.assignment, self.cost = assignment, value

    def _enumerate(self, turn: int) -> Generator[None, None, bool]:
        few = self._few
        assert few is not None, "else it gets no turn"
        before = few.work
        given_up = yield from few.search(_FEW << turn, self._limits)
        self.work += (few.work - before) // _FEW_PER_MICROSECOND
        if few.assignment is not None:
            self._take(few.assignment)
        if self._cost_at(few.bound) > self.bound:
            self.bound, self.proof = self._cost_at(few.bound), "enumeration"
        return few.done or given_up

    def _fill(self, turn: int) -> Generator[None, None, bool]:
        for _ in range(1 << turn):
            next(self._filling, None)
            self.work += SLICE_MICROSECONDS
            if self._balancing.done:
                break
            yield
        self._take(self._balancing.assignment)
        return self._balancing.done

    def _pack(self, turn: int) -> Generator[None, None, bool]:
        base, slots, sizes = self._given
        if sizes.size > MANY:
            turn -= LATER
        if turn < 0:
            return False
        packing = self._packing = self._packing or Packing(base, slots, sizes, self._limits)
        least = max(self._balancing.bound, -(-(self.bound // self._unit + self._total) // self._workers))
        running = packing.improve(least, (self.cost // self._unit + self._total) // self._workers, turn)
        ended = False
        while not ended and self.cost > self.bound:
            before = packing.work
            ended = next(running, True) is True
            self.work += packing.work - before
            if packing.assignment is not None:
                self._take(packing.assignment)
            yield
        return self.done

    def _by_prices(self, late: int, turn: int) -> Generator[None, None, bool]:
        """Spend a turn on the search by prices, from turn `late` on; return whether it has nothing left to try."""
        if turn < late:
            return False
        if self._decision is None:
            self._decision = Decision(self.problem)
            if self._decision.scale == 0:
                return True
            self._search = self._decision.start(self.cost, self._limits.seed, bound=self.bound)
            self._decision.advance(self._search, 0)  # loads the kernel, which no deadline has to pay for
        decision, search, budget, state = self._decision, self._search, _PRICES << turn, UNDECIDED
        assert search is not None, "it was started with the decision"
        while budget > 0 and state == UNDECIDED and not self.done and not search.known.expired:
            search.known.cost = min(int(search.known.cost), self.cost)
            before = int(search.known.cost)
            state = decision.advance(search, _PRICE_SLICE, self._limits.deadline())
            if search.known.cost < before:
                self._take(decision.handed_out(search))
            bound = int(min(search.known.bound, search.known.cost))
            if bound > self.bound:
                self.bound, self.proof = bound, "certificate"
            budget -= _PRICE_SLICE
            self.work += _PRICE_SLICE
            yield
        return state not in (UNDECIDED, PROVED)


def place_all(problem: StepProblem, limits: Limits) -> Generator[SearchState, None, None]:
    """Search, and yield the same object after each slice; ends when it is done, or nothing is left to try.

    Parameters
    ----------
    problem
        A step problem at H = 0 that admits all requests.
    limits
        When the time is over: a slice does not outlast it. The caller looks at the other limits.
    """
    return SearchState(problem, limits).run()


def _passed_on(running: Generator[None, None, bool], known: SearchState) -> Generator[SearchState, None, bool]:
    while True:
        try:
            next(running)
        except StopIteration as end:
            return bool(end.value)
        yield known


def _reduced(problem: StepProblem) -> tuple[IntArray, IntArray, int]:
    """Shift and divide the loads so that they have no common part: base, sizes, and the unit in tokens."""
    base, sizes = problem.base[:, 0], problem.work[:, 0]
    base = base - base.min()
    unit = int(np.gcd.reduce(np.concatenate([base, sizes])))
    return (base, sizes, 1) if unit <= 1 else (base // unit, sizes // unit, unit)


def _expected_at_bound(base: IntArray, slots: IntArray, sizes: IntArray, bound: int) -> float:
    """Return the logarithm of the placements to expect with no load above the bound."""
    N, G = sizes.size, int((slots > 0).sum())
    each = N / G
    slack = G * bound - sum(base[slots > 0].tolist()) - sum(sizes.tolist())
    deviation = 0.5 + float(sizes.std()) * each**0.5
    window = min(0.0, log(max(0, slack) / G + 1) - log(2.5 * deviation))
    return lgamma(N + 1) - G * lgamma(each + 1) + (G - 1) * window


class _FewWorkers:
    """Targets above the bound in doubling steps until one fits, then lower and lower ones until one does not."""

    def __init__(self, base: IntArray, slots: IntArray, sizes: IntArray, bound: int, reached: int) -> None:
        self.workers = np.flatnonzero(slots)
        self.workers = self.workers[np.lexsort((slots[self.workers], base[self.workers]))]
        self.order = np.argsort(-sizes, kind="stable")
        self.base, self.slots, self.size = base[self.workers], slots[self.workers], sizes[self.order]
        self.bound, self.reached = bound, reached
        self.step = 1
        self.found_any = False
        self.work = 0
        self.limit = max(_FEW, 16 << (sizes.size + 1) // 2)  # enough for the lists and something besides
        self.assignment: IntArray | None = None

    @classmethod
    def of(cls, base: IntArray, slots: IntArray, sizes: IntArray, bound: int, reached: int) -> _FewWorkers | None:
        """Return the search, or None where there are too many requests or workers for it."""
        if sizes.size > MOST_REQUESTS or (slots > 0).sum() > MOST_WORKERS:
            return None
        return cls(base, slots, sizes, bound, reached)

    @property
    def done(self) -> bool:
        """Whether no assignment has a smaller largest load than the one found."""
        return self.bound == self.reached

    def search(self, budget: int, limits: Limits) -> Generator[None, None, bool]:
        """Spend a budget of steps; returns whether a target was too much for the longest call."""
        masks = np.zeros(self.workers.size, np.int64)
        while budget > 0 and not self.done:
            target = self.reached - 1 if self.found_any else min(self.reached - 1, self.bound + self.step - 1)
            spent = record(BUDGET)
            spent.limit, spent.deadline = min(self.limit, _LONGEST_CALL), limits.deadline()
            answer = fits(self.size, target - self.base, self.slots, spent, masks)
            budget -= int(spent.work) + 1
            self.work += int(spent.work)
            if answer == FOUND:
                self._keep(masks)
            elif answer == NONE:
                self.bound = target + 1
                self.step *= 2
            elif answer == OPEN and not spent.expired:
                if self.limit >= _LONGEST_CALL:
                    return True
                self.limit *= 2
            yield
        return False

    def _keep(self, masks: IntArray) -> None:
        self.found_any = True
        assignment = np.zeros(self.size.size, np.int64)
        load = self.base.copy()
        for j, mask in enumerate(masks.tolist()):
            mine = [p for p in range(self.size.size) if mask >> p & 1]
            assignment[self.order[mine]] = self.workers[j]
            load[j] += self.size[mine].sum()
        self.assignment, self.reached = assignment, int(max(load.max(), self.bound))
