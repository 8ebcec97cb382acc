"""Nothing is called proved on a search's word: what a search says of a bound is written down and checked.

The log of a search (`lbopt.solvers.exact.decision` and its like) is turned into a certificate, and
`lbopt.solvers.certificates.check`, which shares nothing with the search, says whether the bound follows. Only then is
the origin of the bound "certificate", or "exhaustion" where few requests were enumerated. Where the proof is too long,
or the check does not fit into the limits of the solve, the origin is "search".
"""

from __future__ import annotations

import logging
from dataclasses import replace

from lbopt.exceptions import CertificateError
from lbopt.solvers import recount
from lbopt.solvers.allowance import SpentError, allowing
from lbopt.solvers.budget import Limits
from lbopt.solvers.certificates import ContradictedError, proved_bounds, refuted
from lbopt.solvers.elementary import elementary_bounds
from lbopt.solvers.engine import Bound, Known

_LOG = logging.getLogger(__name__)

#: Work that writing and checking may take, about microseconds. It limits both where no time limit does.
LARGEST = 20_000_000

#: Subsets that the checker's own enumeration of few requests may look at: some seconds.
SUBSETS = 20_000_000

#: Origins of a bound that are a search's word until they are checked.
SEARCHED = ("certificate", "enumeration")


def checked(known: Known, limits: Limits, *, check: bool = True) -> Known:
    """Return what is known, with the words for its bounds that a check of the proof allows.

    Bounds of a decision that is not known to be optimal are not checked: they prove nothing of it.

    Parameters
    ----------
    limits
        Those of the solve; a limit of the work is no limit of the check.
    check
        Whether to check at all.
    """
    if not any(bound.proof in SEARCHED for bound in known.bounds):
        return known
    try:
        if check and known.closed and known.stop != "interrupted":
            with allowing(LARGEST, limits.stopped):
                return _by_proof(known)
        if known.best is not None and known.told[0] is not None and known.told[1] > known.told[0]:
            raise ContradictedError(f"{known.told[0]} is reached, and its bound is {known.told[1]}")
    except ContradictedError as error:
        _LOG.error(
            "the search was wrong on problem %s: %s; this is a defect of lbopt", known.problem.digest[:12], error
        )
        bounds = elementary_bounds(known.problem, known.best)
        return replace(known, bounds=bounds, stop="contradicted", tie="any", evidence=None)
    except (CertificateError, SpentError):  # too long to be written, or to be checked
        pass
    except KeyboardInterrupt:  # the answer is there, and only its check is not
        known = replace(known, stop="interrupted")
    return _said(known, {})


def _said(known: Known, shown: dict[str, int]) -> Known:
    """Return what is known; a bound is called the search's word where no proof shows as much, by goal."""
    conditions = known.problem.conditions
    names = (*(() if conditions is None else conditions.goals), "objective")
    return replace(
        known,
        bounds=tuple(
            Bound(bound.value, "search") if bound.proof in SEARCHED and shown.get(name, -1) < bound.value else bound
            for name, bound in zip(names, known.bounds, strict=True)
        ),
    )


def _by_proof(known: Known) -> Known:
    """Return what is known once its proof is checked."""
    if known.bounds[-1].proof == "enumeration":
        return _by_enumeration(known)
    if known.holds is not None and known.holds():
        return known
    assert known.evidence is not None and known.best is not None, "a search says what writes its proof"
    certificate = known.evidence()
    try:
        shown = proved_bounds(known.problem, certificate)
    except CertificateError as error:
        _LOG.warning("the proof of %s on problem %s fails: %s", known.told[1], known.problem.digest[:12], error)
        raise
    conditions = known.problem.conditions
    if conditions is not None and certificate.body["reached"] != dict(
        zip(conditions.goals, known.best.rank, strict=False)
    ):
        shown = {}
    return _said(replace(known, evidence=lambda: certificate), shown)


def _by_enumeration(known: Known) -> Known:
    bound = known.bounds[-1].value
    p = recount.Numbers.of(known.problem)
    level = (bound - 1 + sum(row[0] for row in (*p.base, *p.work))) // len(p.base)
    answer = refuted(p, level, SUBSETS)
    if answer is False:
        raise ContradictedError(f"loads of at most {level} are possible, and it called {bound} the least cost")
    return replace(known, bounds=(Bound(bound, "exhaustion"),)) if answer else _said(known, {})
