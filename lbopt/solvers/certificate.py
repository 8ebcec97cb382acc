"""The independent check of a result: every claim is recomputed in Python integers, or named as unverified.

`verify` raises at the first claim that does not follow from the problem. What it can establish by itself: the problem's
identity, feasibility, the goals, the objective and all numbers derived from them, any bound that elementary reasoning
reaches, any bound that the result's certificate proves, and, for problems small enough to be exhausted again, every
bound and the leximax claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from lbopt.exceptions import CertificateError
from lbopt.kinds import typed
from lbopt.model import StepProblem
from lbopt.solvers import recount
from lbopt.solvers.certificates import TooLongError, proved_bounds, refuted
from lbopt.solvers.result import Result

#: Placements that the verifier's own exhaustive search may try: about a second.
EXHAUST_LIMIT = 200_000

#: Subsets that its enumeration for few workers may look at: some seconds.
ENUMERATION_LIMIT = 20_000_000

#: Origins of a bound that a result may call proved.
_OWN = ("elementary-bound", "exhaustion", "certificate")

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


@typed
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
    p = recount.Numbers.of(problem)
    own = recount.digest(p)
    _check_words(p, result, own)
    check = _Check(p, result, exhaust_limit)
    check.established.append(f"the result is for problem {own[:12]}…")
    certified = check.certified(problem)
    reached = check.solution()
    bounds = check.bounds(reached, certified)
    return VerificationReport(
        feasible=reached is not None,
        objective_exact=reached is not None,
        bound_established=bounds,
        established=tuple(check.established),
        unverified=tuple(check.unverified),
        unchecked=_unchecked(result),
    )


def _check_words(p: recount.Numbers, result: Result, own: str) -> None:
    """Check what any result has to say of itself; `own` is the digest as the verifier counts it."""
    demand(result.problem_digest == own, f"the result is for problem {result.problem_digest!s:.12}…, not {own:.12}…")
    demand(_whole(result.bound), f"bound is {result.bound!r}; expected a whole number")
    demand(result.stop_reason in _STOP_REASONS, f"stop_reason is {result.stop_reason!r}, which is unknown")
    demand(_seconds(result.seconds), f"seconds is {result.seconds!r}; expected zero or more")
    demand(result.tie in ("any", "leximax"), f"tie is {result.tie!r}; expected any or leximax")
    demand(result.tie == "any" or not p.given, "tie is 'leximax', which no result under conditions claims")
    labels = (*_OWN, "search", f"claimed:{result.solver}")
    demand(result.proof is None or result.proof in labels, f"proof is {result.proof!r}; expected one of {labels}")
    if result.stop_reason == "proved":
        good = result.status == "optimal" and result.proof in _OWN
        demand(good, f"stop_reason is 'proved', but status is {result.status!r} by {result.proof!r}")
    # An exhaustion says nothing before its end, but for one that raises the bound level by level as it goes on.
    if result.proof == "exhaustion" and not (result.solver == "exact" and _admits_all_now(p)):
        demand(
            result.status == "optimal", f"proof is 'exhaustion', which ends optimal, but status is {result.status!r}"
        )
    if not p.given:
        extra = bool(result.stages) or result.paused is not None
        demand(not extra, "it has stages or pauses, but the problem has no conditions")
    for stage in result.stages:
        demand(stage.proof in labels, f"proof of {stage.goal} is {stage.proof!r}; expected one of {labels}")
        if result.stop_reason == "proved":
            demand(stage.proof in _OWN, f"stop_reason is 'proved', but {stage.goal} is {stage.proof!r}")
    goals = [stage.goal for stage in result.stages]
    demand(goals == p.goals, f"stages are {goals}; the problem has {p.goals}")


def _unchecked(result: Result) -> tuple[str, ...]:
    """Name what a result says of its solve, of which problem and answer keep no trace."""
    found = [f"that the solver was {result.solver!r:.80}", f"that it took {result.seconds:g} s"]
    if result.stop_reason != "proved":
        found.append(f"that it stopped by {result.stop_reason!r:.80}")
    return tuple(found)


@dataclass(slots=True)
class _Check:
    """One result: its claims, and what was found of them.

    Parameters
    ----------
    p, result
        The problem, and what is claimed of it.
    limit
        Placements to try at most when re-enumerating.
    established, unverified
        As in `VerificationReport`.
    """

    p: recount.Numbers
    result: Result
    limit: int
    established: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)

    @property
    def claims(self) -> list[tuple[str, int, str | None]]:
        """Goal, bound and its proof; the objective comes last."""
        stages = [(stage.goal, stage.bound, stage.proof) for stage in self.result.stages]
        return [*stages, ("objective", self.result.bound, self.result.proof)]

    def certified(self, problem: StepProblem) -> dict[str, int]:
        """Return the bounds that the result's certificate establishes, by goal; none where it has no certificate."""
        try:
            certificate = self.result.certificate()
        except CertificateError:  # too long to be written down
            return {}
        if certificate is None:
            return {}
        try:
            bounds = proved_bounds(problem, certificate)
        except TooLongError:
            return {}
        held = {stage.goal: stage.value for stage in self.result.stages}
        rests_on = certificate.body["reached"] if self.p.given else {}
        demand(rests_on == held, f"its certificate holds where {rests_on} are reached; the result reaches {held}")
        for name, bound, proof in self.claims:
            if proof == "certificate":
                demand(name in bounds, f"bound {bound} on {name} is not in the certificate")
            if proof in ("certificate", "search") and name in bounds:
                shown = bounds[name]
                demand(shown >= bound, f"bound on {name} is {bound}, but the certificate establishes {shown}")
        return bounds

    def solution(self) -> list[int] | None:
        """Check the decision and what follows from it; return goals and objective, None without a decision."""
        p, result = self.p, self.result
        if result.assignment is None:
            empty = (result.objective, result.gap, result.relative_gap, result.barrier_gap, result.paused)
            demand(empty == (None,) * 5, f"there is no assignment, but objective, gaps and pauses are {empty}")
            demand(result.status == "unknown", f"there is no assignment, but status is {result.status!r}")
            demand(
                all(stage.value is None for stage in result.stages), "there is no assignment, but stages have values"
            )
            return None
        pauses = [] if result.paused is None else [bool(flag) for flag in result.paused]
        count = len(p.pausing)
        demand(len(pauses) == count, f"paused has {len(pauses)} entries; {count} running requests may pause")
        workers = result.assignment.tolist()
        broken = recount.broken_rule(p, workers)
        demand(broken is None, f"the assignment is not feasible: {broken}")
        goals, value, barrier = recount.values_of(p, workers, pauses)
        said = result.objective
        demand(_whole(said) and said == value, f"objective is {said!r}, but it is {value}")
        for stage, reached in zip(result.stages, goals, strict=True):
            demand(_whole(stage.value) and stage.value == reached, f"{stage.goal} is {stage.value!r}, but is {reached}")
            demand(stage.bound <= reached, f"the bound {stage.bound} on {stage.goal} is above its value {reached}")
        demand(
            result.bound <= value, f"bound {result.bound} is above the objective {value} of the result's own decision"
        )
        gap = value - result.bound
        demand(_whole(result.gap) and result.gap == gap, f"gap is {result.gap!r}, but it is {gap}")
        relative, share = gap / max(1, value), gap / barrier if barrier else 0.0
        demand(result.relative_gap == relative, f"relative_gap is {result.relative_gap!r}, but it is {relative}")
        demand(result.barrier_gap == share, f"barrier_gap is {result.barrier_gap!r}, but it is {share}")
        closed = gap == 0 and all(stage.bound == stage.value for stage in result.stages)
        status = "optimal" if closed else "feasible"
        demand(result.status == status, f"status is {result.status!r}, but values and bounds make it {status!r}")
        told = "".join(f", {stage.goal} is {stage.value}" for stage in result.stages)
        self.established.append("the decision keeps every rule of the problem and its conditions")
        self.established.append(f"its objective is {said}{told}; gaps and status follow from the bounds")
        return [*goals, value]

    def bounds(self, reached: list[int] | None, certified: dict[str, int]) -> bool:
        """Check each bound, and what is said of ties; return whether all bounds are established."""
        p, result = self.p, self.result
        admitted = None if reached is None or result.assignment is None else int((result.assignment >= 0).sum())
        elementary = recount.lower_bounds(p, admitted)
        known = [
            max(floor, certified.get(name, floor)) for floor, (name, *_) in zip(elementary, self.claims, strict=True)
        ]
        settled = all(bound <= floor for (_, bound, _), floor in zip(self.claims, known, strict=True))
        # exhausting is the dearest check, so it comes where nothing else has settled the matter
        found = None if settled and result.tie != "leximax" else recount.exhaust(p, self.limit)
        demand(found is None or len(found) > 0 or reached is None, "a decision is claimed, but exhaustion finds none")
        complete = True
        for place, ((name, bound, proof), floor) in enumerate(zip(self.claims, elementary, strict=True)):
            before = [] if reached is None else reached[:place]
            ranks = [(*goals, cost) for goals, (cost, _) in (found or {}).items()]
            least = min((rank[place] for rank in ranks if [*rank[: len(before)]] == before), default=None)
            demand(least is None or bound <= least, f"bound {bound} on {name} is above {least}, found by exhaustion")
            if proof == "elementary-bound":
                demand(bound <= floor, f"bound {bound} on {name} does not follow: elementary reasoning gives {floor}")
            if bound <= floor:
                how = "elementary reasoning"
            elif proof in ("certificate", "search") and bound <= certified.get(name, floor):
                how = "the certificate"
            elif least is not None:
                how = "exhausting the problem again"
            elif proof in ("exhaustion", "search") and _enumerated(p, bound):
                how = "enumerating the problem again"
            else:
                how = None
            said = f"{name} is at least {bound}{' where the goals before it are reached' if place else ''}"
            said = said if p.given else f"no assignment is below {bound}"
            if how is not None:
                self.established.append(f"{said}, by {how}")
                continue
            complete = False
            whose = _WHOSE.get(proof, result.solver)
            self.unverified.append(f"that {said} is the word of {whose}; elementary reasoning gives {floor}")
        if result.tie == "leximax":
            self._leximax(found)
        return complete

    def _leximax(self, found: dict[tuple[int, ...], tuple[int, list[int]]] | None) -> None:
        status, assignment = self.result.status, self.result.assignment
        demand(status == "optimal", f"tie is 'leximax', which speaks of optima, but status is {status!r}")
        if found is None or assignment is None:
            word = f"the word of {self.result.solver}"
            self.unverified.append(f"that the sorted loads are the least among all optima is {word}")
            return
        shape, (_, least) = recount.shape_of(recount.loads_with(self.p, assignment.tolist(), [])), found[()]
        demand(shape == least, f"the result claims leximax with sorted loads {shape}, but {least} is less")
        self.established.append("its sorted loads are the least among all optima")


#: Whose word a bound is, by its proof; a solver's name where it is a claim.
_WHOSE = {
    "certificate": "lbopt's own search, whose certificate is not in the file or takes too long to be checked",
    "search": "lbopt's own search",
    "exhaustion": "lbopt's own exhaustive search",
    None: "the result alone",
}


def _admits_all_now(p: recount.Numbers) -> bool:
    """Tell whether the problem has no window and admits all its requests: its loads are enumerated level by level."""
    return not p.given and len(p.base[0]) == 1 and p.exactly == len(p.work)


def _enumerated(p: recount.Numbers, bound: int) -> bool:
    """Tell whether the verifier's enumeration of few requests on few workers finds nothing below the bound."""
    if not _admits_all_now(p) or bound <= 0:
        return False
    before = sum(row[0] for row in (*p.base, *p.work))
    level = (bound - 1 + before) // len(p.base)  # the largest load that a cost below the bound allows
    answer = refuted(p, level, ENUMERATION_LIMIT)
    demand(answer is not False, f"bound {bound} is wrong: loads of at most {level} are possible")
    return answer is True


def _whole(value: object) -> bool:
    """Return whether a value is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def demand(holds: bool, otherwise: str) -> None:
    """Raise a `CertificateError` unless a statement holds."""
    if not holds:
        raise CertificateError(otherwise)
