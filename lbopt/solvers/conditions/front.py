"""Solves a problem under conditions: exhaustion of what is small, lbopt's own search, else bounds and a solver."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.model import StepProblem, check_assignment
from lbopt.model.paced_numbers import PacedNumbers
from lbopt.solvers.budget import Budget
from lbopt.solvers.checked import checked_outcome
from lbopt.solvers.conditions.decision import Bound, Decision, Outcome
from lbopt.solvers.conditions.explain import reason, without_reason
from lbopt.solvers.conditions.greedy import elementary_bounds, greedy_decision
from lbopt.solvers.conditions.stages import minimised
from lbopt.solvers.engine import Question
from lbopt.solvers.exhaustion import LEAVES, exhausted, leaf_estimate, refuse_leaves, too_deep
from lbopt.solvers.registry import AUTO_ORDER, OWN, automatic, is_available, require
from lbopt.solvers.result import PROVED_BY, Result, Stage

#: Requests up to which "exact" looks whether exhaustion is quick enough.
_MOST_EXHAUSTED = 24

#: Leaves up to which exhaustion goes on where the search cannot, from its decision; seconds of another solver, else.
_FURTHER_LEAVES, _FURTHER_SECONDS = 1 << 19, 10.0

#: Loads of requests on workers up to which a problem is written down: some 3 GB as Python integers.
MOST_LOADS = 1 << 24


def solve_under_conditions(question: Question, solver: str, budget: Budget, *, check: bool = True) -> Result:
    """Return the best decision of a problem that has conditions, and what proves it.

    Parameters
    ----------
    question
        The step problem, and a feasible assignment where one is known; the answer is never worse.
    solver
        As in `lbopt.solvers.solve.solve`.
    budget
        Time, seed and what else ends a solve.
    check
        Whether what the search proves is checked before it is called proved.

    Raises
    ------
    InfeasibleDecisionError
        Where no decision meets the conditions; the message names what binds.
    InputError
        Where the problem is too large for "brute-force", or to be written down.
    """
    problem = question.problem
    if problem.num_requests * problem.num_workers * (problem.horizon + 2) > MOST_LOADS:
        raise InputError(
            f"{problem.num_requests} requests on {problem.num_workers} workers over {problem.horizon + 1} steps are "
            f"too many under conditions: requests times workers times (steps + 1) may be at most {MOST_LOADS}"
        )
    searches = solver == "search" or (solver == "exact" and problem.num_requests > _MOST_EXHAUSTED)
    outcome = _searched(question, budget) if searches else None
    if outcome is not None and outcome.best is not None:
        if outcome.stop == "memory":
            outcome = _taken_further(question, outcome, budget)
        return _result(problem, checked_outcome(problem, outcome, budget.limits, check=check), budget)
    numbers = question.numbers
    why_not = reason(numbers)
    if why_not is not None:
        raise InfeasibleDecisionError(why_not)
    refuted = outcome is not None and outcome.stop == "infeasible"
    if outcome is None or not refuted:
        outcome = _answered(question, solver, budget)
    if outcome.stop == "infeasible":
        own = outcome.solver in ("exact", "brute-force")
        by = (
            "as the search by prices says"
            if refuted
            else "found by exhaustion"
            if own
            else f"as {outcome.solver} claims"
        )
        raise InfeasibleDecisionError(without_reason(numbers, by))
    return _result(problem, checked_outcome(problem, outcome, budget.limits, check=check), budget)


def _searched(question: Question, budget: Budget) -> Outcome | None:
    """Return what lbopt's own search finds; None where it does not take the problem."""
    problem = question.problem
    if problem.horizon > 0:
        return None
    from lbopt.solvers.conditions.priced_proof import written_proof  # these import Numba
    from lbopt.solvers.conditions.priced_search import search_under_conditions

    answered = search_under_conditions(problem, _given(question), budget)
    if answered is None:
        return None
    return replace(answered.outcome, evidence=partial(written_proof, problem, answered))


def _given(question: Question) -> Decision | None:
    """Return the hint as a decision in which nothing pauses."""
    conditions = question.problem.conditions
    if question.hint is None or conditions is None:
        return None
    return Decision.of(question.problem, question.hint.tolist(), [False] * conditions.num_pausable)


def _answered(question: Question, solver: str, budget: Budget) -> Outcome:
    problem, numbers = question.problem, question.numbers
    best, given = greedy_decision(numbers), _given(question)
    if given is not None and (best is None or given.rank(problem) <= best.rank(problem)):
        best = given
    outcome = Outcome(best=best, bounds=elementary_bounds(problem, best), stop="refused", solver="none")
    leaves = None if too_deep(numbers) else leaf_estimate(numbers)
    small = solver == "exact" and leaves is not None and leaves <= LEAVES
    if outcome.closed(problem):
        return Outcome(best=best, bounds=outcome.bounds, stop="done", solver="exact" if small else "none")
    reached = budget.limits.reached(0, *_told(problem, outcome))
    if reached in ("target", "cancelled"):
        return Outcome(best=best, bounds=outcome.bounds, stop=reached, solver="none")
    if small:
        return _by_exhaustion(numbers, best, budget, "exact")
    if solver == "exact" and problem.num_requests <= _MOST_EXHAUSTED:
        searched = _searched(question, budget)
        if searched is not None and searched.best is not None:
            return searched if searched.stop != "memory" else _taken_further(question, searched, budget)
        if searched is not None and searched.stop == "interrupted":
            return Outcome(best=best, bounds=outcome.bounds, stop="interrupted", solver="none")
    if best is not None and solver in OWN and budget.limits.reached(0) == "time":  # writing a program takes seconds
        return Outcome(best=best, bounds=outcome.bounds, stop="time", solver="none")
    name = automatic(leaves, lambda: question.program.total) if solver in OWN else require(solver).name
    if name == "brute-force":
        refuse_leaves(numbers)
        return _by_exhaustion(numbers, best, budget, name)
    unheard = budget.limits.effort is not None or budget.limits.cancel is not None
    if solver in OWN and unheard and budget.time_limit is None:  # another solver hears a limit of time alone
        budget = Budget(_FURTHER_SECONDS, budget.seed)
    return minimised(question.program, name, best, budget)


def _taken_further(question: Question, searched: Outcome, budget: Budget) -> Outcome:
    """Return what exhaustion or another solver makes of a problem whose search would have taken more memory.

    That is so where works are large and hardly any envelope is a load that a worker can have. Another solver knows
    nothing of an effort or a cancel, so it is asked only without these, and for some seconds where there is no limit.

    Parameters
    ----------
    question, searched
        The problem, and what the search ended with: a decision, and bounds.
    budget
        Time, seed and what else ends a solve.
    """
    numbers, limits, left = question.numbers, budget.limits, budget.remaining()
    leaves = None if too_deep(numbers) else leaf_estimate(numbers)
    seconds = _FURTHER_SECONDS if left is None else left
    unheard = limits.effort is not None or limits.cancel is not None
    if leaves is not None and leaves <= _FURTHER_LEAVES:
        other = _by_exhaustion(numbers, searched.best, budget, "exact")
    elif unheard or seconds <= 0 or not any(map(is_available, AUTO_ORDER)):
        other = replace(searched, bounds=elementary_bounds(numbers.problem, searched.best))
    else:
        name = automatic(leaves, lambda: question.program.total)
        other = minimised(question.program, name, searched.best, Budget(seconds, budget.seed))
        if left is None and other.stop == "time":
            other = replace(other, stop=searched.stop)
    return _joined(numbers.problem, searched, other)


def _joined(problem: StepProblem, searched: Outcome, other: Outcome) -> Outcome:
    """Return what two outcomes say together, the second of which began with the decision of the first.

    Parameters
    ----------
    searched, other
        The outcomes; bounds of the first hold as far as the second reaches the same in all goals before.
    """
    assert searched.best is not None and other.best is not None, "a decision is known"
    if other.closed(problem):
        return other
    now, then = other.best.rank(problem), searched.best.rank(problem)
    bounds = [
        mine if now[:place] == then[:place] and mine.value >= theirs.value else theirs
        for place, (mine, theirs) in enumerate(zip(searched.bounds, other.bounds, strict=True))
    ]
    stop = other.stop if other.stop in ("interrupted", "time", "cancelled") else searched.stop
    evidence = searched.evidence if bounds[-1] is searched.bounds[-1] else None
    return replace(searched, best=other.best, bounds=tuple(bounds), stop=stop, evidence=evidence)


def _told(problem: StepProblem, outcome: Outcome) -> tuple[int | None, int]:
    """Return objective and bound for the limits of a solve; no objective where a goal before it is open."""
    bound = outcome.bounds[-1].value
    if outcome.best is None:
        return None, bound
    *goals, objective = outcome.best.rank(problem)
    return (objective if goals == [one.value for one in outcome.bounds[:-1]] else None), bound


def _by_exhaustion(numbers: PacedNumbers, best: Decision | None, budget: Budget, solver: str) -> Outcome:
    found, stop = exhausted(numbers, best, budget.limits.stopped)
    bounds = elementary_bounds(numbers.problem, found)
    if stop == "done":
        if found is None:
            return Outcome(best=None, bounds=bounds, stop="infeasible", solver=solver)
        rank = found.rank(numbers.problem)
        bounds = tuple(
            floor if floor.value == value else Bound(value, "exhaustion")
            for floor, value in zip(bounds, rank, strict=True)
        )
    return Outcome(best=found, bounds=bounds, stop=stop, solver=solver)


def _result(problem: StepProblem, outcome: Outcome, budget: Budget) -> Result:
    conditions = problem.conditions
    assert conditions is not None, "the caller has asked"
    best, bounds = outcome.best, outcome.bounds
    if best is not None:
        check_assignment(problem, best.assignment)
    rank = (None,) * len(bounds) if best is None else best.rank(problem)
    stages = tuple(
        Stage(goal=goal, value=value, bound=bound.value, proof=bound.proof)
        for goal, value, bound in zip(conditions.goals, rank, bounds, strict=False)
    )
    stop = outcome.stop
    if outcome.closed(problem) and stop != "interrupted":
        proofs = {bound.proof for bound in bounds}
        stop = "proved" if proofs <= {*PROVED_BY} else "searched" if proofs <= {*PROVED_BY, "search"} else "claimed"
    elif stop == "done":  # the solver says that it was done, with a bound below what it reached
        stop = "claimed"
    return Result.of(
        problem,
        None if best is None else best.assignment,
        paused=None if best is None else best.paused,
        stages=stages,
        bound=bounds[-1].value,
        proof=bounds[-1].proof,
        stop_reason=stop,
        solver=outcome.solver,
        seconds=budget.seconds,
        evidence=outcome.evidence if any(bound.proof in ("certificate", "search") for bound in bounds) else None,
    )
