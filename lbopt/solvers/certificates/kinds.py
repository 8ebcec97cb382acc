"""Which kinds of certificates there are, and the front door of their check."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lbopt.exceptions import CertificateError
from lbopt.solvers import recount
from lbopt.solvers.certificates.conditioned import check_conditioned
from lbopt.solvers.certificates.format import Certificate, shown, whole
from lbopt.solvers.certificates.priced import check_priced
from lbopt.solvers.certificates.window_prices import check_window_prices
from lbopt.solvers.certificates.windows import check_window

if TYPE_CHECKING:
    from lbopt.model import StepProblem

#: Kind of certificate of a plain problem -> its check, called with the problem's numbers, the bound and the fields of
#: the kind.
KINDS: dict[str, Callable[[recount.Numbers, int, dict[str, Any]], None]] = {
    "priced-envelopes": check_priced,
    "window-boxes": check_window,
    "window-prices": check_window_prices,
}


def check(problem: StepProblem, certificate: Certificate) -> int:
    """Return the bound that `certificate` establishes: no feasible assignment of `problem` costs less.

    Exact integers throughout; nothing of the search that wrote it is used. Under conditions the bound is that on the
    objective.

    Raises
    ------
    CertificateError
        If the certificate is of another problem or of an unknown kind, is malformed, or does not prove its bound.
    """
    bounds = proved_bounds(problem, certificate)
    if "objective" not in bounds or bounds["objective"] != certificate.bound:
        raise CertificateError(f"its bound is {certificate.bound}, but it proves {bounds}")
    return bounds["objective"]


def proved_bounds(problem: StepProblem, certificate: Certificate) -> dict[str, int]:
    """Return the bounds that `certificate` establishes, by goal; those on goals hold where `check` says.

    Raises
    ------
    CertificateError
        As `check` does.
    """
    kind = certificate.kind
    if problem.conditions is not None and kind != "priced-conditions":
        raise CertificateError(f"a certificate of kind {shown(kind)} does not cover conditions")
    if problem.conditions is None and kind == "priced-conditions":
        raise CertificateError("a certificate of kind 'priced-conditions' is of a problem under conditions")
    p = recount.Numbers.of(problem)
    own = recount.digest(p)
    if certificate.problem_digest != own:
        raise CertificateError(f"it is of problem {certificate.problem_digest!s:.12}…, not {own:.12}…")
    if p.given:
        return check_conditioned(p, certificate)
    bound = whole(certificate.bound, "its bound")
    if kind not in KINDS:
        raise CertificateError(f"its kind {shown(kind)} is unknown; this lbopt checks {', '.join(KINDS)}")
    KINDS[kind](p, bound, certificate.body)
    return {"objective": bound}
