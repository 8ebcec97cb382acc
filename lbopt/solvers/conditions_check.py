"""The independent check of a result under conditions: goals, objective and bounds, recomputed in Python integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbopt.exceptions import CertificateError
from lbopt.solvers import conditions_recount as recount
from lbopt.solvers.certificate import VerificationReport, check_common, demand, unchecked, whole
from lbopt.solvers.certificates import check_conditioned
from lbopt.solvers.certificates.conditioned import counted
from lbopt.solvers.certificates.conditioned_patterns import TooLongError

if TYPE_CHECKING:
    from lbopt.model import StepProblem
    from lbopt.solvers.result import Result

_OWN = ("elementary-bound", "exhaustion", "certificate")


def verify_under_conditions(problem: StepProblem, result: Result, exhaust_limit: int) -> VerificationReport:
    """Check every claim of `result`, as `lbopt.solvers.certificate.verify` does.

    Parameters
    ----------
    problem, result
        The step problem, and what is claimed of it.
    exhaust_limit
        Steps of work of the verifier's own exhaustion.
    """
    p = counted(problem)
    own = recount.digest(p)
    check_common(result, own)
    demand(result.tie == "any", "tie is 'leximax', which no result under conditions claims")
    certified = _certified(problem, p, result)
    for stage in result.stages:
        labels = (*_OWN, "search", f"claimed:{result.solver}")
        demand(stage.proof in labels, f"proof of {stage.goal} is {stage.proof!r}; expected one of {labels}")
        if result.stop_reason == "proved":
            demand(stage.proof in _OWN, f"stop_reason is 'proved', but {stage.goal} is {stage.proof!r}")
    goals = [stage.goal for stage in result.stages]
    demand(goals == p.goals, f"stages are {goals}; the problem has {p.goals}")

    established = [f"the result is for problem {own[:12]}…"]
    reached = _check_solution(p, result)
    if reached is not None:
        told = "".join(f", {stage.goal} is {stage.value}" for stage in result.stages)
        established.append("the decision keeps every rule of the problem and its conditions")
        established.append(f"its objective is {result.objective}{told}; gaps and status follow from the bounds")
    unverified: list[str] = []
    all_bounds = _check_bounds(p, result, reached, certified, exhaust_limit, established, unverified)
    return VerificationReport(
        feasible=reached is not None,
        objective_exact=reached is not None,
        bound_established=all_bounds,
        established=tuple(established),
        unverified=tuple(unverified),
        unchecked=unchecked(result),
    )


def _certified(problem: StepProblem, p: recount.Conditioned, result: Result) -> dict[str, int]:
    """Return the bounds that the result's certificate establishes, by goal; none where it has no certificate."""
    try:
        certificate = result.certificate()
    except CertificateError:  # too long to be written down
        return {}
    if certificate is None:
        return {}
    demand(
        certificate.kind == "priced-conditions",
        f"its certificate is of the kind {certificate.kind!r:.40}, which does not cover conditions",
    )
    try:
        bounds = check_conditioned(problem, certificate)
    except TooLongError:
        return {}
    held = {stage.goal: stage.value for stage in result.stages}
    rests_on = certificate.body["reached"]
    demand(rests_on == held, f"its certificate holds where {rests_on} are reached; the result reaches {held}")
    claims = {stage.goal: (stage.bound, stage.proof) for stage in result.stages}
    claims["objective"] = (result.bound, str(result.proof))
    for name, (bound, proof) in claims.items():
        if proof == "certificate":
            demand(name in bounds, f"bound {bound} on {name} is not in the certificate")
            demand(bounds[name] >= bound, f"bound on {name} is {bound}, but the certificate establishes {bounds[name]}")
    return bounds


def _check_solution(p: recount.Conditioned, result: Result) -> list[int] | None:
    """Check the decision and what follows from it; return goals and objective, None without a decision."""
    if result.assignment is None:
        empty = (result.objective, result.gap, result.relative_gap, result.barrier_gap, result.paused)
        demand(empty == (None,) * 5, f"there is no assignment, but objective, gaps and pauses are {empty}")
        demand(result.status == "unknown", f"there is no assignment, but status is {result.status!r}")
        demand(all(stage.value is None for stage in result.stages), "there is no assignment, but stages have values")
        return None
    pauses = [] if result.paused is None else [bool(flag) for flag in result.paused]
    count = len(p.pausing)
    demand(len(pauses) == count, f"paused has {len(pauses)} entries; {count} running requests may pause")
    workers = result.assignment.tolist()
    broken = recount.broken_rule(p, workers)
    demand(broken is None, f"the assignment is not feasible: {broken}")
    goals, value, barrier = recount.values_of(p, workers, pauses)
    demand(whole(result.objective) and result.objective == value, f"objective is {result.objective!r}, but is {value}")
    for stage, reached in zip(result.stages, goals, strict=True):
        demand(whole(stage.value) and stage.value == reached, f"{stage.goal} is {stage.value!r}, but is {reached}")
        demand(stage.bound <= reached, f"the bound {stage.bound} on {stage.goal} is above its value {reached}")
    demand(result.bound <= value, f"bound {result.bound} is above the objective {value} of the result's own decision")
    gap = value - result.bound
    demand(whole(result.gap) and result.gap == gap, f"gap is {result.gap!r}, but it is {gap}")
    relative, share = gap / max(1, value), gap / barrier if barrier else 0.0
    demand(result.relative_gap == relative, f"relative_gap is {result.relative_gap!r}, but it is {relative}")
    demand(result.barrier_gap == share, f"barrier_gap is {result.barrier_gap!r}, but it is {share}")
    closed = gap == 0 and all(stage.bound == stage.value for stage in result.stages)
    status = "optimal" if closed else "feasible"
    demand(result.status == status, f"status is {result.status!r}, but values and bounds make it {status!r}")
    return [*goals, value]


def _check_bounds(
    p: recount.Conditioned,
    result: Result,
    reached: list[int] | None,
    certified: dict[str, int],
    limit: int,
    established: list[str],
    unverified: list[str],
) -> bool:
    """Check each bound; return whether all of them are established."""
    admitted = None if reached is None or result.assignment is None else int((result.assignment >= 0).sum())
    elementary = recount.lower_bounds(p, admitted)
    claims = [(stage.goal, stage.bound, stage.proof) for stage in result.stages]
    claims.append(("the objective", result.bound, str(result.proof)))
    by_certificate = [certified.get(name, -1) for name in (*p.goals, "objective")]
    known = [max(pair) for pair in zip(elementary, by_certificate, strict=True)]
    settled = all(bound <= floor for (_, bound, _), floor in zip(claims, known, strict=True))
    found = None if settled else recount.exhaust(p, limit)
    demand(found is None or len(found) > 0 or reached is None, "a decision is claimed, but exhaustion finds none")
    complete = True
    for place, ((name, bound, proof), floor) in enumerate(zip(claims, elementary, strict=True)):
        said = f"{name} is at least {bound}" + (" where the goals before it are reached" if place else "")
        if proof == "elementary-bound":
            demand(bound <= floor, f"bound {bound} on {name} does not follow: elementary reasoning gives {floor}")
        if bound <= floor:
            established.append(f"{said}, by elementary reasoning")
            continue
        if proof in ("certificate", "search") and bound <= by_certificate[place]:
            established.append(f"{said}, by the certificate")
            continue
        if found:
            before = tuple(reached[:place]) if reached is not None else ()
            all_ranks = [(*goals, cost) for goals, cost in found.items()]
            least = min((rank[place] for rank in all_ranks if rank[: len(before)] == before), default=None)
            demand(least is None or bound <= least, f"bound {bound} on {name} is above {least}, found by exhaustion")
            if least is not None:
                established.append(f"{said}, by exhausting the problem again")
                continue
        complete = False
        whose = {
            "exhaustion": "lbopt's own exhaustive search",
            "search": "lbopt's own search",
            "certificate": "lbopt's own search, whose certificate is not in the file or takes too long to be checked",
        }.get(proof, result.solver)
        unverified.append(f"that {said} is the word of {whose}; elementary reasoning gives {floor}")
    return complete
