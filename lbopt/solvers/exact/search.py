"""Run the exact search on a step problem at H = 0: in slices, so that the clock and Ctrl-C are heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lbopt.kernels.search.envelopes import advance
from lbopt.kernels.search.terms import BOUND, COST, OPEN, PRICES, PROVED
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.exact.decision import Decision

#: Work between two looks at the clock, about microseconds.
SLICE = 5_000


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
        "done" (bound and best cost are equal), "stuck", "time", "interrupted", or "refused" (magnitudes beyond int64).
    prices, envelopes, scale
        int64 (P, K) and (P,): the prices found and the envelopes they were found at, in 1/scale tokens.
    """

    assignment: IntArray | None
    bound: int
    stop: str
    prices: IntArray | None = None
    envelopes: IntArray | None = None
    scale: int = 1


def search_exactly(
    problem: StepProblem,
    best: int | None,
    remaining: Callable[[], float | None],
) -> ExactAnswer:
    """Look for an assignment of cost below `best` (None: any), and for the proof that there is none.

    `remaining` says how many seconds are left; None is without limit.
    """
    decision = Decision(problem)
    if decision.scale == 0:
        return ExactAnswer(None, 0, "refused")
    first, cost = decision.first_assignment()
    assignment: IntArray | None = first
    if best is not None and best <= cost:
        assignment, cost = None, best
    search = decision.start(cost)
    stop = "done"
    state = OPEN
    try:
        while state == OPEN:
            left = remaining()
            if left is not None and left <= 0:
                stop = "time"
                break
            state = advance(decision.step, search, SLICE)
    except KeyboardInterrupt:
        stop = "interrupted"
    if stop == "done" and state != PROVED:
        stop = "stuck"
    if search.known[COST] < cost:
        assignment = decision.handed_out(search)
    kept = min(int(search.known[PRICES]), search.bank.shape[0])
    return ExactAnswer(
        assignment=assignment,
        bound=int(min(search.known[BOUND], search.known[COST])),
        stop=stop,
        prices=search.bank[:kept, : decision.step.v.size].copy(),
        envelopes=search.bank_at[:kept].copy(),
        scale=decision.scale,
    )
