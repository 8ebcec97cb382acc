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
from dataclasses import dataclass
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
from lbopt.solvers.exact.closures import Closures
from lbopt.solvers.exact.decision import Decision
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


@dataclass(slots=True)
class SearchState:
    """The search as it goes on: the best assignment and bound so far, and where the bound comes from.

    `cost` and `bound` are in tokens; `work` is about in microseconds. `proof` is "elementary-bound", "certificate" or
    "enumeration", the last two being the search's own word.
    """

    problem: StepProblem
    assignment: IntArray
    cost: int
    bound: int
    proof: str
    work: int = 0
    decision: Decision | None = None
    prices: Search | None = None

    @property
    def done(self) -> bool:
        """Whether cost and bound are equal."""
        return bool(self.cost == self.bound)


def place_all(problem: StepProblem, limits: Limits) -> Generator[SearchState, None, None]:
    """Search, and yield the same object after each slice; ends when it is done, or nothing is left to try.

    Parameters
    ----------
    problem
        A step problem at H = 0 that admits all requests.
    limits
        When the time is over: a slice does not outlast it. The caller looks at the other limits.
    """
    base, sizes, unit = _reduced(problem)
    slots = np.minimum(problem.slots, sizes.size)  # "no limit" may be a number that cannot be added up
    balancing = Balancing(base, slots, sizes, limits)
    G, total = base.size, sum(base.tolist()) + sum(sizes.tolist())

    def cost_at(largest: int) -> int:
        return int(unit * (G * largest - total))

    def take(assignment: IntArray) -> None:
        value = objective(problem, assignment)
        if value < known.cost:
            known.assignment, known.cost = assignment, value

    first = balancing.longest_first()
    next(first, None)  # at once at the bound, or after the first swaps
    bound = cost_at(balancing.bound)
    known = SearchState(
        problem, balancing.assignment, objective(problem, balancing.assignment), bound, "elementary-bound"
    )
    yield known
    for _ in first:
        take(balancing.assignment)
        known.work += SLICE_MICROSECONDS
        yield known
    take(balancing.assignment)
    if known.done:
        return
    few = _FewWorkers.of(base, slots, sizes, balancing.bound, balancing.max_load)
    filling = balancing.fill_to_targets()

    def enumerate_few(turn: int) -> Generator[None, None, bool]:
        assert few is not None, "else it gets no turn"
        before = few.work
        given_up = yield from few.search(_FEW << turn, limits)
        known.work += (few.work - before) // _FEW_PER_MICROSECOND
        if few.assignment is not None:
            take(few.assignment)
        if cost_at(few.bound) > known.bound:
            known.bound, known.proof = cost_at(few.bound), "enumeration"
        return few.done or given_up

    def fill(turn: int) -> Generator[None, None, bool]:
        for _ in range(1 << turn):
            next(filling, None)
            known.work += SLICE_MICROSECONDS
            if balancing.done:
                break
            yield
        take(balancing.assignment)
        return balancing.done

    packing: Packing | None = None

    def exchange_slack(turn: int) -> Generator[None, None, bool]:
        if sizes.size > MANY:
            turn -= LATER
        if turn < 0:
            return False
        nonlocal packing
        if packing is None:
            packing = Packing(base, slots, sizes, limits)
        least = max(balancing.bound, -(-(known.bound // unit + total) // G))
        running = packing.improve(least, (known.cost // unit + total) // G, turn)
        ended = False
        while not ended and known.cost > known.bound:
            before = packing.work
            ended = next(running, True) is True
            known.work += packing.work - before
            if packing.assignment is not None:
                take(packing.assignment)
            yield
        return known.done

    share = sizes.size / max(1, int((slots > 0).sum()))
    expected = _expected_at_bound(base, slots, sizes, balancing.bound)

    def price(turn: int) -> Generator[None, None, bool]:
        if expected > _PLENTY and turn < _LATE and share > FEW_PACKED:
            return False
        return (yield from _search_prices(known, _PRICES << turn, take, limits))

    turns = [price] if fits_memory(problem) else []
    turns.insert(0 if expected > 0 and share > FEW_PACKED else 1, fill)
    if share <= MOST_PACKED:
        turns.insert(0 if share <= FEW_PACKED else 1, exchange_slack)
    if few is not None:
        turns.insert(0, enumerate_few)
    turn = 0
    while turns:
        for method in list(turns):
            running = method(turn)
            exhausted = yield from _passed_on(running, known)
            if known.cost <= known.bound:
                yield known
                return
            if exhausted:
                turns.remove(method)
        turn = min(turn + 1, 30)


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


def _search_prices(
    known: SearchState, budget: int, take: Callable[[IntArray], None], limits: Limits
) -> Generator[None, None, bool]:
    """Spend a budget on the search by prices; returns whether it has nothing left to try."""
    if known.decision is None:
        known.decision = Decision(known.problem)
        if known.decision.scale == 0:
            return True
        known.prices = known.decision.start(known.cost, limits.seed, bound=known.bound)
        known.decision.advance(known.prices, 0)  # loads the kernel, which no deadline has to pay for
    decision, search = known.decision, known.prices
    assert search is not None, "it was started with the decision"
    state = UNDECIDED
    while budget > 0 and state == UNDECIDED and not known.done and not search.known.expired:
        search.known.cost = min(int(search.known.cost), known.cost)
        before = int(search.known.cost)
        state = decision.advance(search, _PRICE_SLICE, limits.deadline())
        if search.known.cost < before:
            take(decision.handed_out(search))
        bound = int(min(search.known.bound, search.known.cost))
        if bound > known.bound:
            known.bound, known.proof = bound, "certificate"
        budget -= _PRICE_SLICE
        known.work += _PRICE_SLICE
        yield
    return state not in (UNDECIDED, PROVED)


def kept_prices(known: SearchState) -> tuple[IntArray, IntArray, int] | None:
    """Return prices, the envelopes they were found at, and their scale, where prices were found."""
    if known.prices is None or known.decision is None:
        return None
    kept = min(int(known.prices.known.prices), known.prices.bank.shape[0])
    K = known.decision.step.v.size
    return known.prices.bank[:kept, :K].copy(), known.prices.bank_at[:kept].copy(), known.decision.scale


def closures_of(known: SearchState) -> Closures | None:
    """Return why the ranges of the search by prices are closed, where prices alone close them."""
    if known.prices is None or known.decision is None:
        return None
    return Closures.of(known.decision.step, known.prices, known.bound)


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
