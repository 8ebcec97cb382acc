"""The independent check of a result: every claim is recomputed in Python integers, or named as unverified.

`verify` raises at the first claim that does not follow from the problem. What it can establish by itself: the problem's
identity, feasibility, the objective and all numbers derived from it, any bound that elementary reasoning reaches,
and, for problems small enough to be exhausted again, every bound and the leximax claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lbopt.exceptions import CertificateError
from lbopt.solvers import recount
from lbopt.solvers.certificates import check, refuted

if TYPE_CHECKING:
    from lbopt.model import StepProblem
    from lbopt.solvers.result import Result

#: Placements that the verifier's own exhaustive search may try: about a second.
EXHAUST_LIMIT = 200_000

#: Subsets that its enumeration for few workers may look at: some seconds.
ENUMERATION_LIMIT = 20_000_000

_STOP_REASONS = (
    *("proved", "searched", "claimed", "time", "effort", "target", "cancelled"),
    *("interrupted", "refused", "contradicted", "failed", "memory", "precision", "stuck"),
)


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """What a verification found; a false claim raises instead.

    Parameters
    ----------
    feasible
        The result holds an assignment and it keeps every rule.
    objective_exact
        The objective was recomputed and is the one claimed.
    bound_established
        The verifier itself proved that no feasible assignment is below the bound.
    established, unverified
        Sentences: what was established; what is claimed of the answer and not verified.
    unchecked
        Sentences on fields that no check can reach, because they tell how the solve went: solver, seconds, stop reason.
    """

    feasible: bool
    objective_exact: bool
    bound_established: bool
    established: tuple[str, ...]
    unverified: tuple[str, ...]
    unchecked: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"established: {fact}" for fact in self.established]
        lines += [f"not verified: {fact}" for fact in self.unverified]
        return "\n".join(lines + [f"cannot be verified: {fact}" for fact in self.unchecked])


def verify(problem: StepProblem, result: Result, *, exhaust_limit: int = EXHAUST_LIMIT) -> VerificationReport:
    """Check every claim of `result` against `problem`.

    Parameters
    ----------
    problem, result
        The step problem, and what is claimed of it.
    exhaust_limit
        Placements to try at most when re-enumerating; problems beyond it count as not small.

    Raises
    ------
    CertificateError
        Naming the first claim that does not follow.

    Examples
    --------
    >>> import lbopt
    >>> problem = lbopt.StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
    >>> lbopt.verify(problem, lbopt.solve(problem)).bound_established
    True
    """
    if problem.conditions is not None:
        from lbopt.solvers.conditions_check import verify_under_conditions  # it builds on what is here

        return verify_under_conditions(problem, result, exhaust_limit)
    p = recount.Numbers.of(problem)
    established: list[str] = []
    unverified: list[str] = []
    own = recount.digest(p)
    check_common(result, own, raises_bounds=result.solver == "exact" and _admits_all_now(p))
    established.append(f"the result is for problem {own[:12]}…")
    extra = bool(result.stages) or result.paused is not None
    demand(not extra, "it has stages or pauses, but the problem has no conditions")

    shape = _check_solution(p, result)
    if shape is not None:
        established.append("the assignment keeps every rule of the problem")
        established.append(
            f"its imbalance is {result.objective}, and the gaps and the status follow from it and the bound"
        )

    elementary = recount.lower_bound(p)
    certified = _certified(problem, result)
    settled = result.bound <= elementary or certified is not None
    # exhausting is the dearest check, so it comes where nothing else has settled the matter
    exact = None if settled and result.tie != "leximax" else recount.exhaust(p, exhaust_limit)
    bound_established = _check_bound(p, result, elementary, exact, certified, established, unverified)
    if result.tie == "leximax":
        _check_leximax(result, exact, shape, established, unverified)
    return VerificationReport(
        feasible=shape is not None,
        objective_exact=shape is not None,
        bound_established=bound_established,
        established=tuple(established),
        unverified=tuple(unverified),
        unchecked=unchecked(result),
    )


def check_common(result: Result, own: str, raises_bounds: bool = False) -> None:
    """Check what any result has to say of itself.

    Parameters
    ----------
    result
        What is claimed.
    own
        Digest of the problem as the verifier counts it.
    raises_bounds
        Whether an exhaustion of such a problem raises the bound as it goes on, so that it says something of an open
        result; any other one says nothing before its end.
    """
    demand(result.problem_digest == own, f"the result is for problem {result.problem_digest!s:.12}…, not {own:.12}…")
    demand(whole(result.bound), f"bound is {result.bound!r}; expected a whole number")
    demand(result.stop_reason in _STOP_REASONS, f"stop_reason is {result.stop_reason!r}, which is unknown")
    demand(_seconds(result.seconds), f"seconds is {result.seconds!r}; expected zero or more")
    demand(result.tie in ("any", "leximax"), f"tie is {result.tie!r}; expected any or leximax")
    _check_proof_label(result, raises_bounds)


def unchecked(result: Result) -> tuple[str, ...]:
    """Name what a result says of its solve, of which problem and answer keep no trace."""
    found = [f"that the solver was {result.solver!r:.80}", f"that it took {result.seconds:g} s"]
    if result.stop_reason != "proved":
        found.append(f"that it stopped by {result.stop_reason!r:.80}")
    return tuple(found)


def _check_proof_label(result: Result, raises_bounds: bool) -> None:
    labels = ("elementary-bound", "exhaustion", "certificate", "search", f"claimed:{result.solver}")
    demand(result.proof is None or result.proof in labels, f"proof is {result.proof!r}; expected one of {labels}")
    if result.stop_reason == "proved":
        good = result.status == "optimal" and result.proof in ("elementary-bound", "exhaustion", "certificate")
        demand(good, f"stop_reason is 'proved', but status is {result.status!r} by {result.proof!r}")
    if result.proof == "exhaustion" and not raises_bounds:
        demand(
            result.status == "optimal", f"proof is 'exhaustion', which ends optimal, but status is {result.status!r}"
        )


def _certified(problem: StepProblem, result: Result) -> int | None:
    """Return the bound that the result's certificate establishes; None where it has none."""
    if result.proof not in ("certificate", "search"):
        return None
    try:
        certificate = result.certificate()
    except CertificateError:  # too long to be written down
        return None
    if certificate is None:
        return None
    established = check(problem, certificate)
    demand(established >= result.bound, f"bound is {result.bound}, but the certificate establishes {established}")
    return established


def _check_solution(p: recount.Numbers, result: Result) -> list[int] | None:
    """Check assignment, objective, gaps and status; return the sorted loads, or None without an assignment."""
    if result.assignment is None:
        empty = (result.objective, result.gap, result.relative_gap, result.barrier_gap)
        demand(empty == (None,) * 4, f"there is no assignment, but objective and gaps are {empty}")
        demand(result.status == "unknown", f"there is no assignment, but status is {result.status!r}")
        return None
    workers = result.assignment.tolist()
    broken = recount.broken_rule(p, workers)
    demand(broken is None, f"the assignment is not feasible: {broken}")
    loads = recount.loads_with(p, workers)
    value, barrier = recount.idle_and_barrier(loads)
    demand(
        whole(result.objective) and result.objective == value, f"objective is {result.objective!r}, but it is {value}"
    )
    demand(result.bound <= value, f"bound {result.bound} is above the objective {value} of the result's own assignment")
    gap = value - result.bound
    demand(whole(result.gap) and result.gap == gap, f"gap is {result.gap!r}, but it is {gap}")
    relative, share = gap / max(1, value), gap / barrier if barrier else 0.0
    demand(result.relative_gap == relative, f"relative_gap is {result.relative_gap!r}, but it is {relative}")
    demand(result.barrier_gap == share, f"barrier_gap is {result.barrier_gap!r}, but it is {share}")
    status = "optimal" if gap == 0 else "feasible"
    demand(result.status == status, f"status is {result.status!r}, but objective and bound make it {status!r}")
    return sorted((load for row in loads for load in row), reverse=True)


def _check_bound(
    p: recount.Numbers,
    result: Result,
    elementary: int,
    exact: tuple[int, list[int]] | None,
    certified: int | None,
    established: list[str],
    unverified: list[str],
) -> bool:
    if exact is not None:
        demand(result.bound <= exact[0], f"bound {result.bound} is above the optimum {exact[0]}, found by exhaustion")
    if result.proof == "elementary-bound":
        demand(
            result.bound <= elementary, f"bound {result.bound} does not follow: elementary reasoning gives {elementary}"
        )
    if result.bound <= elementary:
        established.append(f"no assignment is below {result.bound}, by elementary reasoning")
        return True
    if exact is not None:
        established.append(f"no assignment is below {result.bound}, by exhausting the problem again")
        return True
    if result.proof in ("exhaustion", "search") and _enumerated(p, result.bound):
        established.append(f"no assignment is below {result.bound}, by enumerating the problem again")
        return True
    if certified is not None:
        established.append(f"no assignment is below {result.bound}, by the certificate")
        return True
    whose = {
        "certificate": "lbopt's own search, whose certificate is not in the file",
        "search": "lbopt's own search",
        "exhaustion": "lbopt's own exhaustive search",
        None: "nobody",
    }.get(result.proof, result.solver)
    unverified.append(
        f"that no assignment is below {result.bound} is the word of {whose}; elementary reasoning gives {elementary}"
    )
    return False


def _admits_all_now(p: recount.Numbers) -> bool:
    """Tell whether the problem has no window and admits all its requests: its loads are enumerated level by level."""
    return len(p.base[0]) == 1 and p.admitted == len(p.work)


def _enumerated(p: recount.Numbers, bound: int) -> bool:
    """Tell whether the verifier's enumeration of few requests on few workers finds nothing below the bound."""
    if not _admits_all_now(p) or bound <= 0:
        return False
    before = sum(row[0] for row in (*p.base, *p.work))
    level = (bound - 1 + before) // len(p.base)  # the largest load that a cost below the bound allows
    answer = refuted(p, level, ENUMERATION_LIMIT)
    demand(answer is not False, f"bound {bound} is wrong: loads of at most {level} are possible")
    return answer is True


def _check_leximax(
    result: Result,
    exact: tuple[int, list[int]] | None,
    shape: list[int] | None,
    established: list[str],
    unverified: list[str],
) -> None:
    demand(result.status == "optimal", f"tie is 'leximax', which speaks of optima, but status is {result.status!r}")
    if exact is None:
        unverified.append(f"that the sorted loads are the least among all optima is the word of {result.solver}")
        return
    demand(shape == exact[1], f"the result claims leximax with sorted loads {shape}, but {exact[1]} is less")
    established.append("its sorted loads are the least among all optima")


def whole(value: object) -> bool:
    """Return whether a value is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def demand(holds: bool, otherwise: str) -> None:
    """Raise a `CertificateError` unless a statement holds."""
    if not holds:
        raise CertificateError(otherwise)
