"""The front door: `solve` finds a placement, joins what everybody knows about it, and says how sure that is.

"exact" is lbopt's own search, which proves what it finds. With any other solver, greedy (and the hint) give a first
assignment, elementary reasoning a first bound. Where they meet the problem is solved. Else one backend runs; its
values are rounded to the nearest integers, checked and re-scored in exact integers, and its claimed bound is rounded
up and used only inside the range in which the backend's claims were found to hold. A claim that a known assignment
refutes is dropped with a warning in the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import StepProblem, check_assignment, objective
from lbopt.model.formulation import Program, formulate
from lbopt.model.integers import IntArray
from lbopt.solvers.backend import (
    AUTO_ORDER,
    OWN,
    Capabilities,
    RawAnswer,
    Task,
    capabilities,
    is_available,
    load,
    require,
)
from lbopt.solvers.bounds import elementary_bound
from lbopt.solvers.brute_force import leaf_estimate
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.greedy import greedy_assignment
from lbopt.solvers.leximax import LARGEST_NUMBER_OF_LOADS, break_ties
from lbopt.solvers.result import PROVED_BY, TIES, Result
from lbopt.solvers.rounding import placement, rounded_up

Clock = Callable[[], float | None]

_LOG = logging.getLogger(__name__)

#: "auto" exhausts problems of up to this many leaves: a fraction of a second.
AUTO_LEAVES = 20_000


def solve(
    problem: StepProblem,
    solver: str = "exact",
    time_limit: float | None = None,
    seed: int = 0,
    hint: Any = None,
    tie: str = "any",
) -> Result:
    """Place the waiting requests with least imbalance.

    Parameters
    ----------
    problem
        The step problem.
    solver
        "exact", "auto" or a name of `BACKENDS`. "exact" answers by lbopt's own searches where the numbers are not too
        large for them. The rest, and windows too large for tie="leximax" by exhaustion, goes to "auto", which takes
        the first solver it can trust.
    time_limit
        Seconds, above 0; None for none. What is known by then is returned. Loading the kernels of the exact search,
        which are compiled when they are needed for the first time ever, does not count. For the other solvers a wide
        program (512 workers, 2,048 requests) takes seconds to be written down, which is not cut short.
    seed
        Passed to the solver; equal calls give equal results.
    hint
        A feasible assignment to start from; the result is never worse.
    tie
        "any" optimum, or the "leximax" one: least vector of all loads sorted from the largest down. Whether that was
        reached is in ``Result.tie``.

    Raises
    ------
    InputError
        On an argument that cannot be used, or a problem too large for "brute-force".
    InfeasibleDecisionError
        Where `hint` breaks a rule of the problem.
    BackendUnavailableError
        Where the package of the solver asked for is not installed; with "exact" and "auto", where none is and the
        problem is of a kind that lbopt's own search does not answer.
    """
    started = time.perf_counter()
    _check_arguments(problem, solver, time_limit, seed, tie)
    if solver == "exact" and problem.num_admitted > 0:
        answered = _search(problem, hint, started, time_limit, tie)
        if answered is not None:
            return answered
    incumbent = _better(problem, greedy_assignment(problem), hint)
    known = Knowledge(incumbent, elementary_bound(problem), "elementary-bound", "proved")
    closed = objective(problem, incumbent) == known.bound
    name = "none"
    # Without a request to admit there is one assignment, which is the leximax one as well.
    established = tie if problem.num_admitted == 0 else "any"
    if problem.num_admitted > 0 and not (closed and tie == "any"):
        program = formulate(problem)
        chosen = _choose(program, solver)
        name = chosen.name

        def remaining() -> float | None:
            return None if time_limit is None else time_limit - (time.perf_counter() - started)

        if not closed or chosen.leximax:
            known, established = _run(program, chosen, known, remaining, seed, tie)
        if tie == "leximax" and not chosen.leximax:
            known, established = _leximax(program, chosen, known, remaining, seed)
    return Result.of(
        problem,
        known.assignment,
        bound=known.bound,
        proof=known.proof,
        stop_reason=known.reason,
        solver=name,
        seconds=time.perf_counter() - started,
        tie=established,
    )


def _search(problem: StepProblem, hint: Any, started: float, time_limit: float | None, tie: str) -> Result | None:
    """Answer by lbopt's own search; None where the problem is of another kind or its numbers are too large for it."""
    from lbopt.solvers.budget import countdown
    from lbopt.solvers.exact import (
        most_even,
        most_even_window,
        search_any_window,
        search_exactly,
        written_known_ends_proof,
        written_proof,
        written_window_proof,
    )
    from lbopt.solvers.exact.leximax import load_kernels
    from lbopt.solvers.exact.leximax_windows import load_window_kernel

    given = None if hint is None else check_assignment(problem, hint, who="the hint")
    value = None if given is None else objective(problem, given)
    if tie == "leximax":
        load_window_kernel() if problem.horizon else load_kernels()
    remaining = countdown(time_limit)
    if problem.horizon:
        answer, ends = search_any_window(problem, value, remaining)
    else:
        answer, ends = search_exactly(problem, value, remaining), False
    if answer.stop == "refused":
        return None
    assignment = given if answer.assignment is None else answer.assignment
    ending = "proved" if answer.stop == "done" else answer.stop
    established = "any"
    if tie == "leximax" and answer.stop == "done" and assignment is not None:
        if problem.horizon == 0:
            assignment, reached = most_even(problem, answer, assignment, remaining)
        else:
            assignment, reached = most_even_window(problem, assignment, remaining)
            if reached == "stuck" and _another_can_break_ties(problem):
                return None
        established = "leximax" if reached == "done" else "any"
        ending = "interrupted" if reached == "interrupted" else ending

    def written() -> Certificate:
        if ends:
            return written_known_ends_proof(problem, answer.bound, answer.prices)
        return written_window_proof(problem, answer.bound) if problem.horizon else written_proof(problem, answer)

    return Result.of(
        problem,
        assignment,
        bound=answer.bound,
        proof=answer.proof,
        stop_reason=ending,
        solver="exact",
        seconds=time.perf_counter() - started,
        tie=established,
        evidence=written if answer.proof == "certificate" else None,
    )


def _another_can_break_ties(problem: StepProblem) -> bool:
    return problem.base.size <= LARGEST_NUMBER_OF_LOADS and any(is_available(name) for name in AUTO_ORDER)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The best assignment so far, the best bound in tokens, where that comes from, why the last run ended."""

    assignment: IntArray
    bound: int
    proof: str
    reason: str


def _run(
    program: Program, chosen: Capabilities, known: Knowledge, remaining: Clock, seed: int, tie: str
) -> tuple[Knowledge, str]:
    """Run the backend once and join its answer with what is known."""
    left = remaining()
    if left is not None and left <= 0:
        return replace(known, reason="time"), "any"
    if chosen.largest_total is not None and program.total > chosen.largest_total:
        return replace(known, reason="refused"), "any"
    start = program.encode(known.assignment.tolist())
    answer = load(chosen.name).minimise(Task(program=program, hint=start, time_limit=left, seed=seed, tie=tie))
    return _join(program, chosen, known, answer), answer.tie


def _join(program: Program, chosen: Capabilities, known: Knowledge, answer: RawAnswer) -> Knowledge:
    """Check and re-score the answer, and keep its bound if it is trusted and nobody refutes it."""
    best, reason = known.assignment, "claimed" if answer.stop == "done" else answer.stop
    value = objective(program.problem, best)
    found = placement(program, answer.values)
    if found is not None and objective(program.problem, found) <= value:
        best, value = found, objective(program.problem, found)
    joined = replace(known, assignment=best, reason=reason)
    claim = rounded_up(answer.bound)
    bound = known.bound if claim is None else program.tokens(claim)
    if bound > value or answer.stop == "failed" or (answer.values is not None and found is None):
        _LOG.warning(
            "%s answered '%s' with bound %s on problem %s, where %d is reached: the answer is wrong and not used",
            *(chosen.name, answer.native_status, answer.bound, program.problem.digest[:12], value),
        )
        joined = replace(joined, reason="contradicted" if answer.stop != "failed" else "failed")
    elif not _trusted(chosen, program.total):
        joined = replace(joined, reason="refused" if answer.stop == "done" else reason)
    elif bound > known.bound:
        joined = replace(joined, bound=bound, proof="exhaustion" if chosen.exhaustive else f"claimed:{chosen.name}")
    if joined.bound == value and joined.proof in PROVED_BY:
        joined = replace(joined, reason="proved")
    if answer.stop == "interrupted":  # whoever called has to hear of Ctrl-C, whatever was reached by then
        joined = replace(joined, reason="interrupted")
    return joined


def _leximax(
    program: Program, chosen: Capabilities, known: Knowledge, remaining: Clock, seed: int
) -> tuple[Knowledge, str]:
    """Break ties among optima by the stages of `leximax`; they weigh loads in tokens, so these must be safe too."""
    tokens = program.scale * program.total + program.problem.num_workers * sum(program.loads.shift)
    if objective(program.problem, known.assignment) != known.bound or not _trusted(chosen, tokens):
        return known, "any"
    start = program.encode(known.assignment.tolist())
    values, ending = break_ties(load(chosen.name).minimise, program, start, remaining=remaining, seed=seed)
    assignment = np.array(program.decode(values), dtype=np.int64)
    reason = "interrupted" if ending == "interrupted" else known.reason
    return replace(known, assignment=assignment, reason=reason), "leximax" if ending == "done" else "any"


def _trusted(chosen: Capabilities, total: int) -> bool:
    return chosen.largest_safe_total is None or total <= chosen.largest_safe_total


def _choose(program: Program, solver: str) -> Capabilities:
    """Return the backend to run.

    "auto" exhausts small problems and else takes the first whose claims can be used; beyond all ranges the one with the
    widest, which still finds the best placements there.
    """
    if solver not in OWN:
        return capabilities(solver)
    if leaf_estimate(program) <= AUTO_LEAVES:
        return capabilities("brute-force")
    ready = [capabilities(name) for name in AUTO_ORDER if is_available(name)]
    if not ready:
        return require("cp-sat")  # the one whose claims reach furthest
    widest = max(ready, key=lambda one: one.largest_safe_total or 0)
    return next((one for one in ready if _trusted(one, program.total)), widest)


def _better(problem: StepProblem, greedy: IntArray, hint: Any) -> IntArray:
    if hint is None:
        return greedy
    given = check_assignment(problem, hint, who="the hint")
    return given if objective(problem, given) <= objective(problem, greedy) else greedy


def check_solver(solver: Any, time_limit: Any) -> None:
    """Refuse a solver that is unknown or absent, and a time limit that is none."""
    if solver not in OWN:
        require(solver)
    if time_limit is not None:
        number = isinstance(time_limit, int | float | np.integer | np.floating) and not isinstance(time_limit, bool)
        if not number or not time_limit > 0:  # NaN is not above 0 either
            raise InputError(f"time_limit is {time_limit!r}; expected seconds above 0, or None for no limit")


def _check_arguments(problem: Any, solver: Any, time_limit: Any, seed: Any, tie: Any) -> None:
    if not isinstance(problem, StepProblem):
        raise InputError(f"problem is a {type(problem).__name__}; expected a StepProblem")
    check_solver(solver, time_limit)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed is {seed!r}; expected a whole number of zero or more")
    if tie not in TIES:
        raise InputError(f"tie is {tie!r}; expected {' or '.join(TIES)}")
