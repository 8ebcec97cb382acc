"""What an answer says, held against the enumeration: the first contradiction in words, None where there is none."""

from collections import Counter
from typing import Any

from naive.step_optimum import least_imbalance, most_even_loads
from solvers.reliability.drawn import Drawn

from lbopt import Result, StepProblem, solve, verify
from lbopt.exceptions import BackendUnavailableError, InputError, LbOptError
from lbopt.solvers import recount
from lbopt.solvers.elementary import elementary_bound


def contradiction(one: Drawn, seen: Counter) -> str | None:
    """Ask every solver of the problem, and compare.

    Parameters
    ----------
    one
        The problem, and what is asked.
    seen
        Counts what happened; changed in place.
    """
    problem = one.problem
    if (problem.base.tolist(), problem.slots.tolist(), problem.work.tolist()) != (one.base, one.slots, one.work):
        return "the constructor gives other numbers than its description"
    numbers = (one.base, one.slots, one.work, one.must)
    optimum = least_imbalance(*numbers)
    even = most_even_loads(*numbers, optimum) if one.tie == "leximax" else None
    seen["problems"] += 1
    seen[f"kind: {one.kind}"] += 1
    for name, there in _features(one).items():
        seen[name] += there
    for name, bound in (
        ("elementary_bound", elementary_bound(problem)),
        ("the verifier's elementary bound", recount.lower_bounds(recount.Numbers(*numbers))[-1]),
    ):
        if bound > optimum:
            return f"{name} is {bound}, the optimum {optimum}"
    for solver, limit in one.solvers:
        try:
            result = solve(problem, solver, time_limit=limit, hint=one.hint, tie=one.tie)
        except BackendUnavailableError:
            continue
        except InputError as error:
            if solver == "brute-force" and "exhaustion would visit" in str(error):
                continue
            return f"{solver} refuses the problem: {error}"
        except Exception as error:
            return f"{solver} raises {error!r}"
        wrong = _wrong(one, result, optimum, even)
        if wrong is not None:
            return f"{solver} with limit {limit}: {wrong}"
        seen["answers"] += 1
        seen[f"{solver}{' with a short limit' if limit and limit < 1 else ''}: {_ending(result)}"] += 1
        seen["ties broken"] += result.tie == "leximax"
        again = {} if seen["answers"] % 5 == 0 else {"exhaust_limit": 0}  # mostly the certificate has to do
        try:
            report = verify(problem, Result.from_json(result.to_json(certificate=True)), **again)
        except LbOptError as error:
            return f"verify refuses a true answer of {solver}: {error}"
        seen["bounds established by verify"] += report.bound_established
    return None


def _wrong(one: Drawn, result: Result, optimum: int, even: list[int] | None) -> str | None:
    """Return what is wrong with one answer."""
    placed = result.assignment.tolist()
    broken = _broken_rule(one, placed)
    if broken is not None:
        return broken
    loads = _loads(one, placed)
    value = _imbalance(loads)
    if result.objective != value:
        return f"the objective is {result.objective}, the assignment is worth {value}"
    if not result.bound <= optimum <= value:
        return f"the optimum {optimum} is not in {result.bound}..{value}"
    if (result.status == "optimal") != (result.bound == value):
        return f"{result.status} with bound {result.bound} and value {value}"
    if result.proved and result.tie == one.tie and result.stop_reason != "proved":
        return f"it is proved, and stopped for {result.stop_reason!r}"
    if one.hint is not None and value > _imbalance(_loads(one, one.hint)):
        return f"{value} is worse than the hint"
    if result.tie == "leximax" and sorted((load for row in loads for load in row), reverse=True) != even:
        return f"the loads {loads} are called leximax; {even} is less"
    return None


def _ending(result: Result) -> str:
    return f"{result.status}, {result.stop_reason}"


def _features(one: Drawn) -> dict[str, bool]:
    largest = max(map(sum, zip(*one.base, *one.work, strict=True)))
    return {
        "must admit": any(one.must),
        "hints": one.hint is not None,
        "ties asked for": one.tie == "leximax",
        "all admitted": len(one.work) <= sum(one.slots),
        "closed workers": 0 in one.slots,
        "slots beyond 2**30": max(one.slots) > 2**30,
        "loads beyond 2**31": largest > 2**31,
        "loads beyond 2**53": largest > 2**53,
        "totals beyond 2**61": len(one.base) * sum(map(sum, zip(*one.base, *one.work, strict=True))) > 2**61,
    }


def _loads(one: Drawn, placed: list[int]) -> list[list[int]]:
    loads = [list(row) for row in one.base]
    for i, g in enumerate(placed):
        if g >= 0:
            loads[g] = [a + b for a, b in zip(loads[g], one.work[i], strict=True)]
    return loads


def _imbalance(loads: list[list[int]]) -> int:
    return sum(max(column) - load for column in zip(*loads, strict=True) for load in column)


def _broken_rule(one: Drawn, placed: list[int]) -> str | None:
    if len(placed) != len(one.work) or any(not -1 <= g < len(one.slots) for g in placed):
        return f"{placed} is no assignment"
    if any(placed.count(g) > free for g, free in enumerate(one.slots)):
        return f"{placed} puts more on a worker than it has slots"
    if sum(g >= 0 for g in placed) != one.admitted:
        return f"{placed} does not admit {one.admitted}"
    if any(must and g < 0 for must, g in zip(one.must, placed, strict=True)):
        return f"{placed} leaves a request waiting that must be admitted"
    return None


def as_case(one: Drawn, wrong: str) -> dict[str, Any]:
    """Return what a regression file holds."""
    return {
        "wrong": wrong,
        "problem": one.problem.to_dict(),
        "kind": one.kind,
        "hint": one.hint,
        "tie": one.tie,
        "solvers": one.solvers,
    }


def from_case(data: dict[str, Any]) -> Drawn:
    """Rebuild the problem of a regression file."""
    problem = StepProblem.from_dict(data["problem"])
    return Drawn(
        kind=data["kind"],
        base=problem.base.tolist(),
        slots=problem.slots.tolist(),
        work=problem.work.tolist(),
        must=problem.must_admit.tolist(),
        problem=problem,
        hint=data["hint"],
        tie=data["tie"],
        solvers=[(solver, limit) for solver, limit in data["solvers"]],
    )
