"""One problem under conditions, answered by lbopt and by the naive twin: the first contradiction as a sentence."""

from collections import Counter
from typing import Any

from naive.conditions import decisions, is_feasible, least_rank, rank_of
from solvers.conditions.drawn import problem_of

from lbopt import InfeasibleDecisionError, Result, solve, verify
from lbopt.model.paced_numbers import paced_numbers
from lbopt.solvers import elementary_bound
from lbopt.solvers.budget import Budget
from lbopt.solvers.elementary import elementary_bounds
from lbopt.solvers.engine import Question
from lbopt.solvers.exhaustion import exhausted
from lbopt.solvers.registry import create

#: Seconds for one question. HiGHS goes round in circles on a few programs far beyond the range of its claims.
LIMIT = 10.0

#: Why a solver may leave a problem open: numbers beyond the range in which its claims are used, or the limit.
OPEN = ("refused", "time")


def rank_of_result(result: Result) -> tuple[int, ...]:
    """Goals and objective that a result states."""
    return (*(stage.value for stage in result.stages), result.objective)


def contradiction(case: dict[str, Any], solver: str, seen: Counter) -> str | None:
    """What is wrong with the answer of a solver, from `solve` to `verify`; None where nothing is.

    Parameters
    ----------
    case
        As the naive twin reads it.
    solver
        Name for `solve`.
    seen
        Counts what came up.
    """
    problem, truth = problem_of(case), least_rank(case)
    try:
        result = solve(problem, solver, time_limit=LIMIT)
    except InfeasibleDecisionError as error:
        seen["infeasible"] += 1
        return None if truth is None else f"'{error}', but {truth} is reached"
    is_open = result.stop_reason in OPEN
    if is_open:
        seen[result.stop_reason] += 1
    if result.assignment is None:
        return None if is_open and result.status == "unknown" else f"nothing is known: {result}"
    if truth is None:
        return f"{result} where no assignment is feasible"
    seen[str(result.proof).split(":")[0]] += 1
    workers = tuple(result.assignment.tolist())
    pauses = () if result.paused is None else tuple(map(bool, result.paused))
    if not is_feasible(case, workers):
        return f"{workers} is not feasible"
    if rank_of(case, workers, pauses) != rank_of_result(result):
        return f"the rank of {workers}, {pauses} is {rank_of(case, workers, pauses)}, not {rank_of_result(result)}"
    rank = rank_of_result(result)
    if rank < truth or (not is_open and (rank != truth or result.status != "optimal")):
        return f"{result}, {result.status}, but the best rank is {truth}"
    report = verify(problem, Result.from_json(result.to_json()))
    if report.unverified or not report.bound_established:
        return f"not verified: {report}"
    return None


def program_contradiction(case: dict[str, Any], solver: str, seen: Counter) -> str | None:
    """What is wrong with a solver's answer where no decision is known before.

    Parameters
    ----------
    case, solver, seen
        As above; a solver of integer programs, or "exhaustion".
    """
    problem, truth = problem_of(case), least_rank(case)
    numbers = paced_numbers(problem)
    if solver == "exhaustion":
        found, stop = exhausted(numbers, None)
        rank = None if found is None else found.rank
        return None if (rank, stop) == (truth, "done") else f"exhaustion finds {rank}, but the best rank is {truth}"
    question = Question(problem=problem)
    try:
        _ = question.program
    except InfeasibleDecisionError:
        seen["infeasible"] += 1
        return None if truth is None else f"no program, but {truth} is reached"
    outcome = create(solver, question).run(question.opening(), Budget(LIMIT))
    if outcome.stop == "infeasible":
        seen["infeasible"] += 1
        return None if truth is None else f"{solver} says infeasible, but {truth} is reached"
    rank = None if outcome.best is None else outcome.best.rank
    bounds = tuple(bound.value for bound in outcome.bounds)
    seen["closed"] += rank == bounds
    if outcome.stop in OPEN and truth is not None and (rank is None or rank >= truth):
        return None
    right = rank == truth and (truth is None or bounds == truth)
    return None if right else f"{solver} reaches {rank} with bounds {bounds}, but {truth} is best"


def bound_contradiction(case: dict[str, Any], seen: Counter) -> str | None:
    """Whether an elementary bound is above what some decision reaches.

    Parameters
    ----------
    case, seen
        As above.
    """
    problem = problem_of(case)
    ranks = [rank for rank, _, _ in decisions(case)]
    bounds = [bound.value for bound in elementary_bounds(problem)]
    for place, bound in enumerate(bounds):
        least = min((rank[place] for rank in ranks), default=None)
        if least is not None and bound > least:
            return f"elementary bound {bound} at place {place}, but a decision reaches {least}"
        seen["tight bounds"] += bound == least
    return None if elementary_bound(problem) == bounds[-1] else "elementary_bound is another one"
