"""From a solver's answer to a library record: what it adds to what was known, and what of it is proved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from lbopt import __version__
from lbopt.exceptions import CertificateError
from lbopt.instances.library import Record
from lbopt.instances.library.entry import PROOFS
from lbopt.model import StepProblem, objective
from lbopt.solvers import BACKENDS, PROVED_BY, Result, elementary_bound, greedy_assignment
from lbopt.studies.library import contradiction_of
from tools.library.in_time import CERTIFICATE_SECONDS, certificate_within

#: Certificates above this size, in characters of JSON, are left out of the library.
LARGEST_CERTIFICATE = 60_000

_STRENGTH = {proof: place for place, proof in enumerate(PROOFS)}

_NO_CERTIFICATE = {
    "elementary-bound": "closed-form reasoning needs none",
    "exhaustion": "the enumeration can be repeated, not written down",
}


@dataclass(frozen=True, slots=True)
class Known:
    """A record and, where the library is to keep it, the certificate of its bound as plain values."""

    record: Record
    certificate: dict[str, Any] | None = None


def solver_name(solver: str) -> str:
    """Return the solver with its version, and with that of its package."""
    package = BACKENDS[solver].package if solver in BACKENDS else None
    return f"lbopt {__version__} {solver}" + (f" ({package} {version(package)})" if package else "")


def starting_point(problem: StepProblem) -> Known:
    """Return what is known before any search: a greedy assignment, and a bound by closed-form reasoning."""
    assignment = greedy_assignment(problem)
    return Known(
        Record(
            best=objective(problem, assignment),
            assignment=assignment,
            best_by=solver_name("greedy"),
            bound=elementary_bound(problem),
            proof="elementary-bound",
            bound_by=f"lbopt {__version__}",
            certificate_note=_NO_CERTIFICATE["elementary-bound"],
        )
    )


def joined(known: Known, problem: StepProblem, result: Result) -> Known:
    """Return the better of both in everything: value, proved bound, strength of its proof, claimed bound.

    Raises
    ------
    CertificateError
        Where a proved bound is above a value that is reached, on either side: one of the proofs is wrong.
    """
    contradiction = contradiction_of(known.record, result)
    if contradiction is not None:
        raise CertificateError(contradiction)
    record = known.record
    if result.objective is not None and (record.best is None or result.objective < record.best):
        by = solver_name(result.solver)
        record = replace(record, best=result.objective, assignment=result.assignment, best_by=by)
    claims = result.proof is not None and result.proof not in PROVED_BY
    if claims and result.bound > max(record.bound, record.claimed_bound or 0):
        record = replace(record, claimed_bound=result.bound, claimed_by=solver_name(result.solver))
    known = replace(known, record=record)
    if result.proof in PROVED_BY:
        known = _with_bound(known, problem, result)
    return _without_idle_claim(known)


def _with_bound(known: Known, problem: StepProblem, result: Result) -> Known:
    """Take over a higher bound, or an equal one that rests on something stronger."""
    record, proof = known.record, str(result.proof)
    weaker = _STRENGTH[proof] >= _STRENGTH[record.proof]
    if result.bound < record.bound or (result.bound == record.bound and weaker):
        return known
    by = solver_name(result.solver) if result.solver != "none" else f"lbopt {__version__}"
    if proof == "certificate":
        return _with_certificate(known, problem, result, by)
    return Known(_proved(record, result.bound, proof, by, note=_NO_CERTIFICATE[proof]))


def _with_certificate(known: Known, problem: StepProblem, result: Result, by: str) -> Known:
    """Have the proof written down and checked; where that cannot be done the bound is the search's word."""
    try:
        certificate = certificate_within(problem, result, CERTIFICATE_SECONDS)
    except CertificateError as error:
        certificate, reason = None, str(error)
    else:
        reason = "the search wrote none"
    if certificate is None:
        if result.bound == known.record.bound:  # nothing is stronger than it was
            return known
        return Known(_proved(known.record, result.bound, "search", by, note=reason))
    text = certificate.to_json()
    keep = len(text) <= LARGEST_CERTIFICATE
    note = "" if keep else f"{len(text):,} characters; `lbopt solve NAME --out FOLDER` writes it again"
    record = _proved(known.record, certificate.bound, "certificate", by, note=note)
    record = replace(record, certificate="kept" if keep else "left out", certificate_digest=certificate.digest)
    return Known(record, certificate.to_dict() if keep else None)


def _proved(record: Record, bound: int, proof: str, by: str, *, note: str) -> Record:
    """Return the record with another proved bound, which has no certificate yet."""
    return replace(
        record,
        bound=bound,
        proof=proof,
        bound_by=by,
        certificate="none",
        certificate_note=note,
        certificate_digest=None,
    )


def _without_idle_claim(known: Known) -> Known:
    """Drop a claim that a proof has overtaken or that a known assignment refutes."""
    record = known.record
    claim = record.claimed_bound
    if claim is None or (claim > record.bound and (record.best is None or claim <= record.best)):
        return known
    return replace(known, record=replace(record, claimed_bound=None, claimed_by=None))
