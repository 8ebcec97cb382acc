"""Run the exact search on a step problem at H = 0: in slices, so that the clock and Ctrl-C are heard.

In an empty or nearly empty cluster with more requests than slots most choices of requests allow an imbalance of zero.
With a set of admitted requests fixed, the cost is G M - (loads before) - T, so zero asks for loads that are all equal,
hence for a total divisible by G. Of many requests nearly any such set can be balanced (`balance`), so one is as good as
another: the oldest, with one of them exchanged where the total has to be mended. A cost of zero, or of the elementary
bound, is proved; else what is found is a start for the search by prices.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.kernels.deadline import ENDLESS
from lbopt.kernels.routing.balance_route import br_0
from lbopt.kernels.routing.state import Room, Waiting, parameters_of
from lbopt.kernels.search.state import OPEN, PROVED
from lbopt.model import StepProblem, objective
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.certificates import Certificate, priced_envelopes
from lbopt.solvers.elementary import elementary_bound
from lbopt.solvers.exact.all_admitted import SearchState, place_all
from lbopt.solvers.exact.balance import SLICE_MICROSECONDS, Balancing
from lbopt.solvers.exact.decision import Closures, Decision
from lbopt.solvers.exact.tie_orders import canonical
from lbopt.solvers.exact.workspace import fits_memory

#: Work between two looks at the clock, about microseconds.
SLICE = 5_000

#: Work after which prices are left for a while where many slots are free, and slots of a worker up to which they are
#: tried at all before everything else.
BRIEF, MODERATE_SLOTS = 50_000, 16

#: Seconds for a request, and for a request and a worker, that the end of a search takes.
_SECONDS_EACH, _SECONDS_A_PAIR = 3e-7, 5e-9

#: Seconds that the end of a search may take whatever the clock says.
_BRIEFLY = 0.004

#: Requests admitted, times requests, up to which a router is asked after the time is over: some tenths of a second.
_MOST_ROUTED = 500_000_000

#: The defaults of policy "br-0": largest first, lexicographic key, no age bound.
_ROUTER = parameters_of(stage_switch=7, window_size=4, age_bound=-1)


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
        "done" (bound and best cost are equal), what `Limits.reached` says, "interrupted", "memory" (more than
        the search may take), "precision" (rounding left something open), or "refused" (magnitudes beyond int64).
    cost
        Cost of the best assignment known, `best` included, tokens; None where the search refused.
    prices
        int64 (P, K): the prices of a window in which requests end.
    proof
        Where the bound comes from: "elementary-bound", or what `lbopt.solvers.checked` checks, "certificate" or
        "enumeration".
    closures
        Why the ranges of a search by prices are closed: its proof. None where the log was too long to be kept.
    """

    assignment: IntArray | None
    bound: int
    stop: str
    cost: int | None = None
    prices: IntArray | None = None
    proof: str = "certificate"
    closures: Closures | None = None


def search_exactly(
    problem: StepProblem,
    best: int | None,
    limits: Limits,
    *,
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
    tie, seed
        Which of the assignments that differ by equals alone, see `tie_orders`.
    """
    search = search_all_admitted if admits_all(problem) else search_some_waiting
    found = search(problem, best, limits.leaving(seconds_to_finish(problem)))
    return finished(problem, found, best, limits, tie, seed)


def admits_all(problem: StepProblem) -> bool:
    """Return whether there are requests and all are admitted: balanced number partitioning."""
    return 0 < problem.num_requests == problem.num_admitted


def search_some_waiting(problem: StepProblem, best: int | None, limits: Limits) -> ExactAnswer:
    """Answer a step in which some requests have to wait; parameters as in `search_exactly`.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    best
        Cost of an assignment that is known already, tokens; None for none.
    """
    return (_cold if is_cold(problem) else by_prices)(problem, best, limits)


def seconds_to_finish(problem: StepProblem) -> float:
    """Return about how long `finished` takes after a search that was cut off: a router compares each with each."""
    return _SECONDS_EACH * problem.num_requests + _SECONDS_A_PAIR * problem.num_admitted * problem.num_workers


def finished(
    problem: StepProblem,
    answer: ExactAnswer,
    best: int | None,
    limits: Limits,
    tie: str = "oldest",
    seed: int | tuple[int, ...] = 0,
) -> ExactAnswer:
    """Return the answer with the placement that `tie` names. After a search that was cut off, a router may be better.

    A large problem whose time is over already is spared the router.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    best, limits, tie, seed
        As in `search_exactly`.
    """
    if answer.stop not in ("done", "refused"):
        if limits.stopped() is None or seconds_to_finish(problem) <= _BRIEFLY:
            answer = _no_worse_than_a_router(problem, answer, best)
        answer = raised(answer, elementary_bound(problem))
    if answer.assignment is None:
        return answer
    return replace(answer, assignment=canonical(problem, answer.assignment, tie, seed))


def _no_worse_than_a_router(problem: StepProblem, answer: ExactAnswer, best: int | None) -> ExactAnswer:
    """Return the answer of a search that was cut off, or what a router makes of the problem where that is cheaper."""
    if problem.num_admitted * problem.num_requests > _MOST_ROUTED:
        return answer
    placed = routed(problem)
    if placed is None:
        return answer
    cost = objective(problem, placed)
    known = answer.cost if answer.cost is not None else best
    return answer if known is not None and known <= cost else replace(answer, assignment=placed, cost=cost)


def routed(problem: StepProblem) -> IntArray | None:
    """Return the placement of the router BR-0, int64 (N,); None where some requests must be admitted.

    The search starts from three placements that cost less time and are often worse. A search that ends with a proof is
    at least as good as BR-0 anyway, so BR-0 is computed only where the search was cut off. BR-0 has no notion of
    requests that must be admitted. See `lbopt.kernels.routing.balance_route`.
    """
    if problem.must_admit.any():
        return None
    count = problem.num_requests
    choice = np.full(count, -1, dtype=np.int64)
    loads, free, none = problem.base[:, 0].copy(), problem.slots.copy(), np.zeros(count, dtype=np.int64)
    waiting = Waiting(np.arange(count), problem.work[:, 0], none, np.zeros((0, 2)), 0)
    br_0(_ROUTER, Room(loads, free, loads, none[:0]), waiting, choice)
    return choice


def raised(answer: ExactAnswer, bound: int) -> ExactAnswer:
    """Return the answer of a search that was cut off before it reached what elementary reasoning says."""
    return answer if answer.bound >= bound else replace(answer, bound=bound, proof="elementary-bound")


def by_prices(problem: StepProblem, best: int | None, limits: Limits) -> ExactAnswer:
    """Answer by the search of `lbopt.kernels.search`, which serves every decision; arguments as above.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    best
        Cost of an assignment that is known already, tokens; None for none.
    """
    decision, enough_memory = Decision(problem), fits_memory(problem)
    if decision.scale == 0 and enough_memory:
        return ExactAnswer(None, 0, "refused")
    first, cost = decision.first_assignment()
    assignment: IntArray | None = first
    if best is not None and best <= cost:
        assignment, cost = None, best
    if not enough_memory:
        return ExactAnswer(assignment, 0, "memory", cost=cost, proof="elementary-bound")
    search = decision.start(cost, limits.seed, limits.effort or ENDLESS)
    stop = None
    try:
        state = decision.advance(search, 0)  # no work, but a first bound
        while state == OPEN and stop is None:
            known = decision.known()
            stop = "time" if known.expired else limits.reached(known.work, known.cost, min(known.bound, known.cost))
            if stop is None:
                state = decision.advance(search, SLICE, limits.deadline())
    except KeyboardInterrupt:
        stop = "interrupted"
    if stop is None:
        stop = "done" if state == PROVED else "memory"
    known = decision.known()
    if known.cost < cost:
        assignment, cost = decision.handed_out(search), known.cost
    return ExactAnswer(
        assignment=assignment,
        bound=min(known.bound, cost),
        stop=stop,
        cost=cost,
        closures=Closures.of(decision, search, known, min(known.bound, cost)),
    )


def _cold(problem: StepProblem, best: int | None, limits: Limits) -> ExactAnswer:
    """Balance a chosen set of requests; where that is not the optimum for sure, go on by prices.

    Where some workers are too heavy for an imbalance of zero, as full ones beside nearly empty ones are, prices mostly
    settle a moderate number of slots at once, and are tried first.
    """
    bound = elementary_bound(problem)
    tried: ExactAnswer | None = None
    if int(problem.slots.max()) <= MODERATE_SLOTS:
        brief = BRIEF if limits.effort is None else min(BRIEF, limits.effort)
        tried = by_prices(problem, best, replace(limits, effort=brief))
        if tried.stop != "memory" and (tried.stop != "effort" or brief == limits.effort):
            return tried
        best = tried.cost
    found: tuple[IntArray, int] | None = None
    interrupted = False
    try:
        for slices, assignment in enumerate(balanced_start(problem, limits), start=1):
            value = objective(problem, assignment)
            if found is None or value < found[1]:
                found = assignment, value
            if value <= bound or limits.reached(slices * SLICE_MICROSECONDS, found[1], bound) is not None:
                break
    except KeyboardInterrupt:
        interrupted = True
    if found is None:
        if tried is None:
            raise KeyboardInterrupt
        return replace(tried, stop="interrupted")
    start, cost = found
    useful = best is None or cost < best
    least = cost if best is None else min(cost, best)
    known = start if useful else None if tried is None else tried.assignment
    if least == bound:
        return ExactAnswer(known, bound, "done", cost=least, proof="elementary-bound")
    if interrupted:
        return ExactAnswer(known, bound, "interrupted", cost=least, proof="elementary-bound")
    answer = by_prices(problem, least, limits)
    if answer.assignment is not None:
        return answer
    return replace(answer, assignment=known, cost=None if answer.stop == "refused" else least)


def search_all_admitted(problem: StepProblem, best: int | None, limits: Limits) -> ExactAnswer:
    """Answer a step in which all waiting requests are admitted; parameters as in `search_exactly`.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    best
        Cost of an assignment that is known already, tokens; None for none.
    """
    known: SearchState | None = None
    stop = "memory"  # where enumeration and prices have no room left, filling goes on, but proves nothing
    try:
        for known in place_all(problem, limits):
            reached = None if known.done else limits.reached(known.work, known.cost, known.bound)
            if reached is not None:
                stop = reached
                break
    except KeyboardInterrupt:
        if known is None:
            raise
        stop = "interrupted"
    assert known is not None, "the first look comes before any doubt"
    cost = known.cost if best is None else min(known.cost, best)
    return ExactAnswer(
        assignment=None if best is not None and best <= known.cost else known.assignment,
        bound=known.bound,
        stop="done" if known.bound == cost else stop,
        cost=cost,
        proof=known.proof,
        closures=known.closures(),
    )


def written_proof(problem: StepProblem, answer: ExactAnswer) -> Certificate:
    """Return the certificate that no assignment costs less than answer.bound: the log of the search by prices.

    Raises
    ------
    CertificateError
        Where the log was too long to be kept, or is too long to be written down.
    """
    if answer.bound <= 0:  # no cost is below 0, and nothing has to be shown
        return priced_envelopes(problem.digest, answer.bound, 1, [], [])
    if answer.closures is None:
        raise CertificateError("the log of the search was too long to be kept, so there is no proof to write down")
    return answer.closures.certificate(problem)


#: Free slots per open worker from which on the set of admitted requests hardly matters.
MANY_SLOTS = 4

#: Slices of work that are spent on a set, some 20 ms each.
_SLICES = 50


def is_cold(problem: StepProblem) -> bool:
    """Tell whether requests have to wait although each open worker gets many."""
    open_workers = int((problem.slots > 0).sum())
    return problem.num_requests > problem.num_admitted >= MANY_SLOTS * max(1, open_workers)


def balanced_start(problem: StepProblem, limits: Limits) -> Generator[IntArray, None, None]:
    """Yield better and better assignments of the chosen requests, one after each slice.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    limits
        When the time is over: a slice does not outlast it.
    """
    base, sizes = problem.base[:, 0], problem.work[:, 0]
    chosen = _chosen(problem, base, sizes)
    balancing = Balancing(base, problem.slots, sizes[chosen], limits)

    def search() -> Generator[None, None, bool]:
        done = yield from balancing.longest_first()
        return done or (yield from balancing.fill_to_targets())

    steps = search()
    for _ in range(_SLICES):
        next(steps, None)
        assignment = np.full(sizes.size, -1, dtype=np.int64)
        assignment[chosen] = balancing.assignment
        yield assignment
        if balancing.done:
            return


def _chosen(problem: StepProblem, base: IntArray, sizes: IntArray) -> IntArray:
    """Return the oldest requests, the forced ones first; one is exchanged where that makes the total divisible by G."""
    G, U = problem.num_workers, problem.num_admitted
    order = np.argsort(~problem.must_admit, kind="stable")
    inside, outside = np.sort(order[:U]), np.sort(order[U:])
    wanted = -(sum(base.tolist()) + sum(sizes[inside].tolist())) % G
    free = inside[~problem.must_admit[inside]]
    if wanted == 0 or free.size == 0:
        return inside
    # whom to take in for each remainder of whom is left out: the smallest of its kind
    of_remainder = np.full(G, -1, dtype=np.int64)
    for i in outside[np.argsort(-sizes[outside], kind="stable")]:
        of_remainder[sizes[i] % G] = i
    partner = of_remainder[(sizes[free] + wanted) % G]
    fitting = np.flatnonzero(partner >= 0)
    if fitting.size == 0:
        return inside
    change = np.abs(sizes[partner[fitting]] - sizes[free[fitting]])
    best = fitting[np.argmin(change)]
    return np.sort(np.append(inside[inside != free[best]], partner[best]))
