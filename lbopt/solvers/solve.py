"""The front door: `solve` asks one engine after the other, joins their answers, and says how sure the result is.

"exact" is lbopt's own: small problems are exhausted in plain Python, and the others go to its compiled searches, which
prove what they find; "search" is the compiled searches alone. Where none of them answers, and with every other solver,
a greedy placement (or the hint) is the first assignment, and elementary reasoning gives the first bound. Where they
meet the problem is solved. Else one solver of integer programs runs, and its claims are checked
(`lbopt.solvers.engine.join`). Problems under conditions take a path of their own (`lbopt.solvers.conditions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lbopt.model import StepProblem
from lbopt.solvers.arguments import check_stops, checked_question
from lbopt.solvers.budget import Budget, Cancel, Progress
from lbopt.solvers.checked import checked, unchecked
from lbopt.solvers.conditions.front import solve_under_conditions
from lbopt.solvers.engine import Engine, Knowledge, Question, join
from lbopt.solvers.exhaustion import leaf_estimate, too_deep
from lbopt.solvers.program_engine import too_wide
from lbopt.solvers.registry import OWN, OWN_SEARCHES, SMALL, automatic, create
from lbopt.solvers.result import Result


def solve(
    problem: StepProblem,
    solver: str = "exact",
    time_limit: float | None = None,
    seed: int = 0,
    hint: Any = None,
    tie: str = "any",
    *,
    effort: int | None = None,
    target: int | None = None,
    gap: int | None = None,
    cancel: Cancel | None = None,
    callback: Callable[[Progress], object] | None = None,
    check: bool = True,
) -> Result:
    """Place the waiting requests with least imbalance.

    Parameters
    ----------
    problem
        The step problem.
    solver
        "exact", "search", "auto" or a name of `BACKENDS`. "exact" exhausts problems of at most 5,000 placements, for
        which nothing is compiled, and answers the others by lbopt's compiled searches where the numbers are not too
        large for them. The rest, and windows too large for tie="leximax" by exhaustion, goes to "auto", which takes the
        first solver it can trust, and exhausts up to five million placements where it can trust none. "search" is the
        same without the first exhaustion: once compiled it takes a fraction of a millisecond where exhaustion takes
        several, and it writes certificates. Under conditions it is the same, but for windows, which go to "auto".
    time_limit
        Seconds, above 0; None for none. What is known by then is returned. Loading the kernels of the exact search,
        which are compiled when they are needed for the first time ever, does not count. For the other solvers a wide
        program (512 workers, 2,048 requests) takes seconds to be written down, which is not cut short.
    seed
        Of the draws of the search, or passed to the solver; equal calls give equal results.
    hint
        A feasible assignment to start from; the result is never worse. No request pauses in it.
    tie
        "any" optimum, or the "leximax" one: least vector of all loads sorted from the largest down. Whether that was
        reached is in ``Result.tie``. Not under conditions.
    effort
        Units of work, about a microsecond each, after which lbopt's own search stops with what it knows: a limit that
        every machine feels alike. Small problems are exhausted whatever it is.
    target, gap
        Stop where the imbalance is at most `target`, or its distance from the bound at most `gap`; tokens.
    cancel
        A `threading.Event`: where it is set, the solve ends with what is known.
    callback
        Called with a `Progress` (objective, bound, seconds, work) where one of them has become better. What it raises
        ends the solve.
    check
        Whether an optimum is checked before it is called proved: the search's proof is written down, and the checker of
        certificates, which shares nothing with the search, has to accept it within what is left of the time. False
        saves that, mostly a few milliseconds; the result then says "proved by the search, not checked".

    Raises
    ------
    InputError
        On an argument that cannot be used, or a problem too large for "brute-force".
    InfeasibleDecisionError
        Where `hint` breaks a rule of the problem, and where no decision meets its conditions: the message names what
        binds.
    BackendUnavailableError
        Where the package of the solver asked for is not installed; with "exact" and "auto", where none is and the
        problem is of a kind that lbopt's own search does not answer.
    """
    check_stops(solver, effort, target, gap, cancel, callback)
    budget = Budget(time_limit, seed, effort=effort, target=target, gap=gap, cancel=cancel, callback=callback)
    question = checked_question(problem, solver, time_limit=time_limit, seed=seed, hint=hint, tie=tie)
    if problem.conditions is not None:
        return solve_under_conditions(question, solver, budget, check=check)
    known = Knowledge(problem=problem, assignment=question.hint)
    for engine in _engines(question, solver):
        if engine.breaks_ties or not known.closed:
            engine.run(known, budget)
            known = join(known, engine, engine.answer())
        if tie == "leximax":
            known = engine.break_ties(known, budget)
        reached = budget.limits.reached(0, known.value, known.bound or 0)
        if known.final:
            break
        if reached in ("target", "cancelled"):
            known = replace(known, reason=reached)
            break
    known = checked(known, budget.limits) if check else unchecked(known)
    assert known.bound is not None, "elementary reasoning gives one"
    return Result.of(
        problem,
        known.assignment,
        bound=known.bound,
        proof=known.proof,
        stop_reason=known.reason,
        solver=engine.solver,
        seconds=budget.seconds,
        tie=known.tie,
        evidence=known.evidence,
    )


def _engines(question: Question, solver: str) -> Iterator[Engine]:
    """Yield the engines to ask; each next one is chosen, and imported, only when it is needed."""
    anything_admitted = question.problem.num_admitted > 0
    if solver in ("exact", "search") and anything_admitted:
        for name in (SMALL, *OWN_SEARCHES) if solver == "exact" else OWN_SEARCHES:
            own = create(name, question)
            if own.refusal() is None:
                yield own
    yield create("elementary", question)
    if anything_admitted:
        yield create(_auto(question) if solver in OWN else solver, question)


def _auto(question: Question) -> str:
    """Return the backend that "auto" takes."""
    if too_wide(question.problem):  # no solver is started
        return "brute-force"
    leaves = None if too_deep(question.numbers) else leaf_estimate(question.numbers)
    return automatic(leaves, lambda: question.program.total)
