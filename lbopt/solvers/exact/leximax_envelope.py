"""The least envelope that keeps the optimal cost.

The optimal cost is G M - (loads before) - T, so an optimum with a smaller envelope M admits G tokens fewer for each
unit. The exact search is asked again, for anything of that cost under smaller and smaller envelopes, until it proves
that there is none.
"""

from __future__ import annotations

import numpy as np

from lbopt.kernels.search.state import OPEN, PROVED, Search
from lbopt.model import StepProblem, loads_after, objective
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.search import SLICE, ExactAnswer

#: Beyond so many slots of a worker the search by prices takes too long to be asked again and again.
MOST_SLOTS = 16


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
    if answer.prices is None or answer.envelopes is None:
        return
    kept, K = answer.prices.shape
    search.bank[:kept, :K] = answer.prices
    search.bank_at[:kept] = answer.envelopes
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
