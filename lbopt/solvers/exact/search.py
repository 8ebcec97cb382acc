"""Run the exact search on a step problem at H = 0: in slices, so that the clock and Ctrl-C are heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lbopt.kernels.search.envelopes import advance
from lbopt.kernels.search.terms import BOUND, COST, OPEN, PRICES, PROVED, WORK, Search
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.tie_orders import canonical

#: Work between two looks at the clock, about microseconds.
SLICE = 5_000

#: Where everybody is admitted, workers of more slots than this keep the search busy for minutes; what it cannot
#: close before stays open.
MOST_SLOTS = 10

Clock = Callable[[], float | None]


@dataclass(frozen=True, slots=True, eq=False)
class ExactAnswer:
    """What a search ended with.

    Parameters
    ----------
    assignment
        int64 (N,), the best one found; None where the one it was given is at least as good.
    bound
        Proved lower bound on the cost, tokens.
    stop
        "done" (bound and best cost are equal), "stuck", "time", "effort", "interrupted", or "refused" (magnitudes
        beyond int64).
    cost
        Cost of the best assignment known, `best` included, tokens; None where the search refused.
    prices, envelopes, scale
        int64 (P, K) and (P,): the prices found and the envelopes they were found at, in 1/scale tokens; None where
        the bound does not come from prices.
    """

    assignment: IntArray | None
    bound: int
    stop: str
    cost: int | None = None
    prices: IntArray | None = None
    envelopes: IntArray | None = None
    scale: int = 1


def search_exactly(
    problem: StepProblem,
    best: int | None,
    remaining: Clock,
    *,
    effort: int | None = None,
    tie: str = "oldest",
    seed: int | tuple[int, ...] = 0,
) -> ExactAnswer:
    """Look for an assignment of cost below `best` (None: any), and for the proof that there is none.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    best
        Cost of an assignment that is known already, tokens.
    remaining
        Says how many seconds are left; None is without limit.
    effort
        Units of work, about a microsecond each, after which the search stops: a limit that every machine feels alike.
        0 gives the cheap assignment and bound that it begins with.
    tie, seed
        Which of the assignments that differ by equals alone, see `tie_orders`.
    """
    decision = Decision(problem)
    if decision.scale == 0:
        return ExactAnswer(None, 0, "refused")
    first, cost = decision.first_assignment()
    bound = 0
    if decision.admits_everybody:
        first, cost, bound = decision.everybody(first)
    assignment: IntArray | None = first
    if best is not None and best <= cost:
        assignment, cost = None, best
    most_slots = int(problem.slots.max())
    prices: IntArray | None = np.zeros((0, decision.step.v.size), dtype=np.int64)
    envelopes: IntArray | None = np.zeros(0, dtype=np.int64)
    if decision.admits_everybody and (cost == bound or most_slots > MOST_SLOTS):
        stop = "done" if cost == bound else "stuck"
        if most_slots > MOST_SLOTS:
            prices = envelopes = None
    else:
        search = decision.start(cost)
        stop = _run(decision, search, remaining, effort)
        if search.known[COST] < cost:
            assignment, cost = decision.handed_out(search), int(search.known[COST])
        bound = max(bound, int(min(search.known[BOUND], cost)))
        kept = min(int(search.known[PRICES]), search.bank.shape[0])
        prices, envelopes = search.bank[:kept, : decision.step.v.size].copy(), search.bank_at[:kept].copy()
    if assignment is not None:
        assignment = canonical(problem, assignment, tie, seed)
    return ExactAnswer(assignment, bound, stop, cost, prices, envelopes, decision.scale)


def _run(decision: Decision, search: Search, remaining: Clock, effort: int | None) -> str:
    """Search until all is proved or a limit is reached; return why it stopped."""
    try:
        state = advance(decision.step, search, 0)  # no work, but a first bound
        while state == OPEN:
            left = remaining()
            if left is not None and left <= 0:
                return "time"
            if effort is not None and search.known[WORK] >= effort:
                return "effort"
            state = advance(decision.step, search, SLICE)
    except KeyboardInterrupt:
        return "interrupted"
    return "done" if state == PROVED else "stuck"
