"""Nothing is called proved on a search's word: what a search says of a bound is written down and checked.

The writers (`lbopt.solvers.exact.proof` and its like) turn what a search kept into a certificate, and
`lbopt.solvers.certificates.check`, which shares nothing with the search, says whether the bound follows. Only then is
the origin of the bound "certificate", or "exhaustion" where few requests were enumerated. Where the proof is too long,
or the check does not fit into the limits of the solve, the origin is "search".
"""

from __future__ import annotations

import logging
from dataclasses import replace

from lbopt.exceptions import CertificateError
from lbopt.model import StepProblem
from lbopt.solvers import recount
from lbopt.solvers.allowance import SpentError, allowing
from lbopt.solvers.budget import Limits
from lbopt.solvers.certificates import ContradictedError, check, proved_bounds, refuted
from lbopt.solvers.conditions.decision import Bound, Outcome
from lbopt.solvers.elementary import elementary_bound
from lbopt.solvers.engine import Knowledge

_LOG = logging.getLogger(__name__)

#: Work that writing and checking may take, about microseconds. It limits both where no time limit does.
LARGEST = 20_000_000

#: Subsets that the checker's own enumeration of few requests may look at: some seconds.
SUBSETS = 20_000_000

#: Origins of a bound that are a search's word until they are checked.
SEARCHED = ("certificate", "enumeration")


def checked(known: Knowledge, limits: Limits) -> Knowledge:
    """Return what is known, with the word for its bound that a check of the proof allows.

    The bound of an answer that is not known to be optimal is not checked: it proves nothing of the answer.

    Parameters
    ----------
    limits
        Those of the solve; a limit of the work is no limit of the check.
    """
    if known.proof not in SEARCHED or not known.closed or known.reason == "interrupted":
        return unchecked(known)
    try:
        with allowing(LARGEST, limits.stopped):
            return _by_enumeration(known) if known.proof == "enumeration" else _by_certificate(known)
    except ContradictedError as error:
        return _contradicted(known, error)
    except (CertificateError, SpentError):  # too long to be written, or to be checked
        return unchecked(known)
    except KeyboardInterrupt:  # the answer is there, and only its check is not
        return replace(unchecked(known), reason="interrupted")


def unchecked(known: Knowledge) -> Knowledge:
    """Return what is known, its bound called the search's word where it is that."""
    if known.proof not in SEARCHED:
        return known
    if known.value is not None and known.bound is not None and known.bound > known.value:
        return _contradicted(known, f"{known.value} is reached, and its bound is {known.bound}")
    return replace(known, proof="search", reason="searched" if known.reason == "proved" else known.reason)


def _contradicted(known: Knowledge, why: object) -> Knowledge:
    """Return what is known without the bound of a search that was wrong."""
    _LOG.error("the search was wrong on problem %s: %s; this is a defect of lbopt", known.problem.digest[:12], why)
    bound = elementary_bound(known.problem)
    return replace(
        known, bound=bound, proof="elementary-bound", reason="contradicted", tie="any", evidence=None, final=True
    )


def checked_outcome(problem: StepProblem, outcome: Outcome, limits: Limits, *, check: bool) -> Outcome:
    """Return the outcome of a solve under conditions, with the words for its bounds that a check of the proof allows.

    Parameters
    ----------
    check
        Whether to check at all.
    """
    if all(bound.proof != "certificate" for bound in outcome.bounds):
        return outcome
    shown: dict[str, int] = {}
    stop = outcome.stop
    if check and outcome.closed(problem) and stop != "interrupted":
        try:
            with allowing(LARGEST, limits.stopped):
                shown = _shown_under_conditions(problem, outcome)
        except (CertificateError, SpentError):  # too long to be written, or to be checked
            pass
        except KeyboardInterrupt:
            stop = "interrupted"
    names = (*_goals(problem), "objective")
    bounds = tuple(
        bound if bound.proof != "certificate" or shown.get(name, -1) >= bound.value else Bound(bound.value, "search")
        for name, bound in zip(names, outcome.bounds, strict=True)
    )
    return replace(outcome, bounds=bounds, stop=stop)


def _goals(problem: StepProblem) -> tuple[str, ...]:
    assert problem.conditions is not None, "the caller has asked"
    return tuple(problem.conditions.goals)


def _shown_under_conditions(problem: StepProblem, outcome: Outcome) -> dict[str, int]:
    """Return the bound that the certificate establishes for each goal, and for the objective."""
    assert outcome.evidence is not None and outcome.best is not None, "a search says what writes its proof"
    certificate = outcome.evidence()
    bounds = proved_bounds(problem, certificate)
    reached = dict(zip(_goals(problem), outcome.best.rank(problem), strict=False))
    return bounds if certificate.body["reached"] == reached else {}


def _by_certificate(known: Knowledge) -> Knowledge:
    assert known.evidence is not None, "a search says what writes its proof"
    if known.holds is not None and known.holds():
        return known
    certificate = known.evidence()
    try:
        check(known.problem, certificate)
    except CertificateError as error:
        _LOG.warning("the proof of %s on problem %s fails: %s", known.bound, known.problem.digest[:12], error)
        raise
    return replace(known, evidence=lambda: certificate)


def _by_enumeration(known: Knowledge) -> Knowledge:
    assert known.bound is not None, "the enumeration ended with one"
    p = recount.Numbers.of(known.problem)
    level = (known.bound - 1 + sum(row[0] for row in (*p.base, *p.work))) // len(p.base)
    answer = refuted(p, level, SUBSETS)
    if answer is False:
        raise ContradictedError(f"loads of at most {level} are possible, and it called {known.bound} the least cost")
    return replace(known, proof="exhaustion") if answer else unchecked(known)
