"""The front door: `solve` asks one engine after the other, and says how sure the result is.

"exact" is lbopt's own: small problems are exhausted in plain Python, and the others go to its compiled searches, which
prove what they find; "search" is the compiled searches alone. Where none of them answers, and with every other solver,
a greedy placement (or the hint) is the first decision, and elementary reasoning gives the first bounds. Where they meet
the problem is solved. Else one solver of integer programs runs, whose claims are checked
(`lbopt.solvers.program_engine`). A plain problem is one whose conditions ask nothing.

What a user passes is checked first. That, and this file, need neither Numba nor a solver package.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.kinds import fits, typed
from lbopt.model import StepProblem, check_assignment
from lbopt.solvers.budget import Budget, Stops
from lbopt.solvers.checked import checked
from lbopt.solvers.engine import Engine, Known, Question
from lbopt.solvers.exhaustion import most_leaves
from lbopt.solvers.opening import reason, without_reason
from lbopt.solvers.program_engine import too_wide
from lbopt.solvers.registry import AUTO_ORDER, OWN, OWN_SEARCHES, automatic, create, is_available, require
from lbopt.solvers.result import TIES, Result

#: Loads of requests on workers up to which a problem under conditions is written down: some 3 GB as Python integers.
MOST_LOADS = 1 << 24

#: Seconds of another solver that hears nothing of what is to end the solve.
_FURTHER_SECONDS = 10.0


@typed
def solve(
    problem: StepProblem,
    solver: str = "exact",
    time_limit: float | None = None,
    seed: int = 0,
    hint: Any = None,
    tie: str = "any",
    *,
    check: bool = True,
    **stops: Unpack[Stops],
) -> Result:
    """Place the waiting requests with least imbalance.

    Parameters
    ----------
    problem
        The step problem.
    solver
        "exact", "search", "auto" or a name of `BACKENDS`. "exact" exhausts problems of at most 5,000 placements, for
        which nothing is compiled, and answers the others by lbopt's compiled searches where the numbers are not too
        large for them. The rest goes to "auto", which takes the first solver it can trust, and exhausts up to five
        million placements where it can trust none. "search" is the same without the first exhaustion: once compiled it
        takes a fraction of a millisecond where exhaustion takes several, and it writes certificates. Under conditions
        it is the same, but for windows, which go to "auto".
    time_limit
        Seconds, above 0; None for none. What is known by then is returned. Loading the kernels of the exact search,
        which are compiled when they are needed for the first time ever, does not count. For the other solvers a wide
        program (512 workers, 2,048 requests) takes seconds to be written down, which is not cut short.
    seed
        Of the draws of the search, or passed to the solver; equal calls give equal results.
    hint
        A feasible assignment to start from; the result is never worse. No request pauses in it.
    tie
        "any" optimum, or the "leximax" one: least vector of all loads sorted from the largest down, which lbopt's own
        searches and exhaustion look for. Whether that was reached is in ``Result.tie``. Not under conditions.
    check
        Whether an optimum is checked before it is called proved: the search's proof is written down, and the checker of
        certificates, which shares nothing with the search, has to accept it within what is left of the time. False
        saves that, mostly a few milliseconds; the result then says "proved by the search, not checked".
    **stops
        What ends lbopt's own search early, and who hears of it: `effort`, `target`, `gap`, `cancel` and `callback`, see
        `Stops`.

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
    if stops:
        check_stops(solver, **stops)
    budget = Budget(time_limit, seed, **stops)
    question = checked_question(problem, solver, time_limit=time_limit, seed=seed, hint=hint, tie=tie)
    _refuse_width(problem)
    known = checked(_answered(question, solver, budget), budget.limits, check=check)
    if known.stop == "infeasible":
        raise InfeasibleDecisionError(reason(question.numbers) or without_reason(question.numbers, _whose(known)))
    return Result.of(known, budget.seconds)


def _answered(question: Question, solver: str, budget: Budget) -> Known:
    """Return what the engines make of it; each next one is chosen, and imported, only when it is needed."""
    known = question.opening()
    if solver in ("exact", "search"):
        for name in ("small", *OWN_SEARCHES) if solver == "exact" else OWN_SEARCHES:
            known = _asked(create(name, question), known, budget)
            if known.final:
                return known
        if known.stop == "memory":
            known = _asked(create("further", question), known, budget)
    if not known.final:
        known = _asked(create("elementary", question), known, budget)
    if known.final:
        return known
    return create(solver, question).run(known, budget) if solver not in OWN else _by_others(question, known, budget)


def _asked(engine: Engine, known: Known, budget: Budget) -> Known:
    """Return what is known after an engine that may refuse, final where it is good enough."""
    if engine.refusal() is not None:
        return known
    known = engine.run(known, budget)
    if known.final and budget.limits.callback is None:
        return known
    reached = budget.limits.reached(0, *known.told)
    if known.final or reached not in ("target", "cancelled"):
        return known
    return replace(known, stop=reached, final=True)


def _by_others(question: Question, known: Known, budget: Budget) -> Known:
    """Return what exhaustion or another solver makes of a problem that lbopt's own search does not answer.

    It knows nothing of an effort or a cancel, so that it has some seconds where there is no other limit. Where the
    search would have taken more memory, it is asked only without these. That is so where works are large and hardly any
    envelope is a load that a worker can have.
    """
    limits, memory = budget.limits, known.stop == "memory"
    unheard = limits.effort is not None or limits.cancel is not None
    if memory and (unheard or not any(map(is_available, AUTO_ORDER))):
        return known
    if known.best is not None and limits.stopped() == "time":  # writing a program takes seconds
        return known if memory else replace(known, stop="time")
    if budget.time_limit is None and (unheard or memory):
        budget = Budget(_FURTHER_SECONDS, budget.seed)
    return create(_auto(question), question).run(known, budget)


def _auto(question: Question) -> str:
    """Return the backend that "auto" takes."""
    if question.problem.conditions is None and too_wide(question.problem):  # no solver is started
        return "brute-force"
    return automatic(most_leaves(question.numbers), lambda: question.program.total)


def _refuse_width(problem: StepProblem) -> None:
    wide = problem.num_requests * problem.num_workers * (problem.horizon + 2) > MOST_LOADS
    if wide and problem.conditions is not None:
        raise InputError(
            f"{problem.num_requests} requests on {problem.num_workers} workers over {problem.horizon + 1} steps are "
            f"too many under conditions: requests times workers times (steps + 1) may be at most {MOST_LOADS}"
        )


def _whose(known: Known) -> str:
    """Return whose word it is that there is no decision."""
    if known.solver == "search":
        return "as the search by prices says"
    return "found by exhaustion" if known.solver in ("exact", "brute-force") else f"as {known.solver} claims"


#: Which of equal requests and workers lbopt's own search takes; `lbopt.solvers.exact.tie_orders` has their meaning.
TIE_ORDERS = ("oldest", "newest", "random")


def checked_question(
    problem: StepProblem, solver: str, *, time_limit: float | None, seed: int, hint: Any, tie: str
) -> Question:
    """Return what is asked, or raise if an argument of `solve` cannot be used; arguments are those of `solve`.

    Parameters
    ----------
    problem, solver, time_limit, seed, hint, tie
        As in `solve`.
    """
    check_solver(solver, time_limit)
    if seed < 0:
        raise InputError(f"seed is {seed!r}; expected a whole number of zero or more")
    if tie not in TIES:
        raise InputError(f"tie is {tie!r}; expected {' or '.join(TIES)}")
    if problem.conditions is not None and tie != "any":
        raise InputError(f"tie is {tie!r}, which a problem with conditions does not take; expected any")
    given = None if hint is None else check_assignment(problem, hint, who="the hint")
    return Question(problem=problem, hint=given, tie=tie)


@typed
def check_solver(solver: str, time_limit: float | None) -> None:
    """Raise if `solver` is unknown or its package is absent, or if `time_limit` is not a positive number."""
    if solver not in OWN:
        require(solver)
    if time_limit is not None and not time_limit > 0:  # NaN is not
        raise InputError(f"time_limit is {time_limit}; expected seconds above 0, or None for no limit")


def check_stops(solver: str, **stops: Any) -> None:
    """Raise if what ends a search early cannot be used, or is for another solver.

    Parameters
    ----------
    **stops
        As in `lbopt.solvers.Stops`, and of any type.
    """
    given = {name: stops.pop(name, None) for name in Stops.__annotations__}
    if stops:
        raise TypeError(f"solve() got an unexpected keyword argument {next(iter(stops))!r}")
    named = [name for name, value in given.items() if value is not None]
    if named and solver not in ("exact", "search"):
        raise InputError(
            f"{named[0]} is for solver='exact' and 'search', not for {solver!r}; leave it out, or use time_limit"
        )
    for name, least in (("effort", 1), ("target", 0), ("gap", 0)):
        value = given[name]
        if value is not None and not (fits(value, int) and value >= least):
            raise InputError(f"{name} is {value!r}; expected a whole number of {least} or more, or None")
    cancel, callback = given["cancel"], given["callback"]
    if cancel is not None and not callable(getattr(cancel, "is_set", None)):
        raise InputError(f"cancel is a {type(cancel).__name__}; expected a threading.Event, or None")
    if callback is not None and not callable(callback):
        raise InputError(f"callback is a {type(callback).__name__}; expected a function of one argument, or None")


def check_tie_order(tie: str, who: str) -> None:
    """Raise if `tie` is not a tie order; `who` begins the message."""
    if tie not in TIE_ORDERS:
        raise InputError(f"{who}: tie order is '{tie}'; expected {', '.join(TIE_ORDERS[:-1])} or {TIE_ORDERS[-1]}")
