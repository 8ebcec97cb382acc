"""Run the exact search on a step problem at H = 0: in slices, so that the clock and Ctrl-C are heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lbopt.kernels.search.envelopes import advance
from lbopt.kernels.search.terms import BOUND, COST, OPEN, PRICES, PROVED
from lbopt.model import StepProblem, objective
from lbopt.model.integers import IntArray
from lbopt.solvers.bounds import elementary_bound
from lbopt.solvers.exact.cold_start import balanced_start, is_cold
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.everybody import Everybody, kept_prices, place_everybody
from lbopt.solvers.exact.workspace import check_memory

Clock = Callable[[], float | None]

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
    proof
        Where the bound comes from, as in `Result`.
    """

    assignment: IntArray | None
    bound: int
    stop: str
    prices: IntArray | None = None
    envelopes: IntArray | None = None
    scale: int = 1
    proof: str = "certificate"


def search_exactly(
    problem: StepProblem,
    best: int | None,
    remaining: Clock,
) -> ExactAnswer:
    """Look for an assignment of cost below `best` (None: any), and for the proof that there is none.

    `remaining` says how many seconds are left; None is without limit.

    Raises
    ------
    InputError
        Where the search would take too much memory.
    """
    if 0 < problem.num_requests == problem.num_admitted:
        return _everybody(problem, best, remaining)
    if not is_cold(problem):
        answer = _by_prices(problem, best, remaining)
        return answer if answer.stop in ("done", "refused") else _raised(answer, elementary_bound(problem))
    cold, cost = _cold(problem, remaining)
    useful = best is None or cost < best
    least = cost if best is None else min(cost, best)
    bound = elementary_bound(problem) if least > 0 else 0
    if least == bound:
        return ExactAnswer(cold if useful else None, bound, "done", proof="elementary-bound")
    answer = _by_prices(problem, least, remaining)
    if answer.assignment is None and useful:
        answer = replace(answer, assignment=cold)
    return _raised(answer, bound)


def _raised(answer: ExactAnswer, bound: int) -> ExactAnswer:
    """Return the answer of a search that was cut off before it reached what elementary reasoning says."""
    return answer if answer.bound >= bound else replace(answer, bound=bound, proof="elementary-bound")


def _by_prices(problem: StepProblem, best: int | None, remaining: Clock) -> ExactAnswer:
    check_memory(problem)
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


def _cold(problem: StepProblem, remaining: Clock) -> tuple[IntArray, int]:
    """Return the best assignment of a chosen set of requests, and its cost."""
    found: tuple[IntArray, int] | None = None
    for assignment in balanced_start(problem):
        value, left = objective(problem, assignment), remaining()
        if found is None or value < found[1]:
            found = assignment, value
        if value == 0 or (left is not None and left <= 0):
            break
    assert found is not None, "there is one after the first slice"
    return found


def _everybody(problem: StepProblem, best: int | None, remaining: Clock) -> ExactAnswer:
    """Answer a decision in which all waiting requests are admitted."""
    known: Everybody | None = None
    stop = "stuck"
    try:
        for known in place_everybody(problem):
            left = remaining()
            if not known.done and left is not None and left <= 0:
                stop = "time"
                break
    except KeyboardInterrupt:
        if known is None:
            raise
        stop = "interrupted"
    assert known is not None, "the first look comes before any doubt"
    prices, envelopes, scale = kept_prices(known) or (None, None, 1)
    return ExactAnswer(
        assignment=None if best is not None and best <= known.cost else known.assignment,
        bound=known.bound,
        stop="done" if known.bound == min(known.cost, known.cost if best is None else best) else stop,
        prices=prices,
        envelopes=envelopes,
        scale=scale,
        proof=known.proof,
    )
