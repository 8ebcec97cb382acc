"""Ask the verified checker: a program extracted from Coq, with the theorem that what it accepts is a lower bound.

`proofs/theories/Checker.v` defines the check and proves `check_sound`; `make proofs` extracts it and builds
`proofs/build/lbopt-checked`. This module writes a problem and its certificate as words (the format is in
`proofs/checker/driver.ml`), runs the program, and reads its answer. The theorem speaks of horizon 0 without conditions
and of the kind "priced-envelopes". A leaf "dead" of a tree becomes a leaf that the prices of its node refute: the
program recomputes all best profits with the copies that are left, so it needs no names of workers.

Source: `docs/proofs.md`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lbopt.exceptions import CertificateError, InputError
from lbopt.solvers.certificates.format import (
    Branch,
    Certificate,
    Node,
    Placement,
    Refuted,
    read_priced_body,
    refuse_many_slots,
    shown,
)

if TYPE_CHECKING:
    from lbopt.model import StepProblem
    from lbopt.solvers.result import Result

#: Kinds of certificates that the theorem covers.
COVERED = ("priced-envelopes",)

#: Seconds that the program may take.
TIME_LIMIT = 600.0

_NAME = "lbopt-checked"
_BUILT = Path(__file__).resolve().parents[3] / "proofs" / "build" / _NAME


def find_checker() -> Path | None:
    """Return the file that LBOPT_CHECKED names, else `lbopt-checked` on the PATH or where `make proofs` builds it."""
    named = os.environ.get("LBOPT_CHECKED")
    if named:
        return Path(named) if Path(named).is_file() else None
    found = shutil.which(_NAME)
    if found is not None:
        return Path(found)
    return _BUILT if _BUILT.is_file() else None


def formally_accepted(problem: StepProblem, certificate: Certificate, *, time_limit: float = TIME_LIMIT) -> bool:
    """Return whether the verified checker accepts: then no feasible assignment costs less than the certificate's bound.

    Parameters
    ----------
    problem
        A step problem of horizon 0 without conditions.
    certificate
        Of a kind in `COVERED`.
    time_limit
        Seconds that the program may take.

    Raises
    ------
    InputError
        If the checker is not built.
    CertificateError
        If problem or certificate are not of a kind that the theorem covers, the certificate is of another problem or
        malformed, or the program gives no answer.
    """
    program = find_checker()
    if program is None:
        raise InputError(
            "the verified checker is not built: run `make proofs` in a checkout (it needs Coq and OCaml, see "
            "proofs/README.md), or name the program in LBOPT_CHECKED"
        )
    text = words(problem, certificate)
    try:
        done = subprocess.run([program], input=text, capture_output=True, text=True, timeout=time_limit, check=False)
    except subprocess.TimeoutExpired:
        raise CertificateError(f"the verified checker gave no answer within {time_limit:g} s") from None
    except OSError as error:
        raise InputError(f"the verified checker {program} cannot be started: {error.strerror}") from None
    if done.returncode not in (0, 1) or (done.returncode == 0) != (done.stdout == "accepted\n"):
        said = (done.stderr or done.stdout).strip()[-200:]
        raise CertificateError(f"the verified checker ended with code {done.returncode}: {said or 'no word'}")
    return done.returncode == 0


def formal_bound(problem: StepProblem, result: Result) -> int:
    """Return the bound of a result, if its certificate establishes it by the verified checker.

    Raises
    ------
    InputError
        If the checker is not built.
    CertificateError
        If the result has no certificate, the certificate's bound is below the result's, or the checker does not accept.
    """
    certificate = result.certificate()
    if certificate is None:
        raise CertificateError(
            "the result has no certificate, which the verified checker needs: `lbopt solve --solver exact --out` "
            "writes one where its search proves the bound by prices"
        )
    if certificate.bound < result.bound:
        raise CertificateError(f"bound is {result.bound}, but the certificate claims only {certificate.bound}")
    if not formally_accepted(problem, certificate):
        raise CertificateError(f"the verified checker does not accept the certificate of bound {certificate.bound}")
    return certificate.bound


def words(problem: StepProblem, certificate: Certificate) -> str:
    """Return a problem and its certificate in the words that the verified checker reads."""
    if problem.conditions is not None or problem.horizon > 0 or certificate.kind not in COVERED:
        raise CertificateError(
            f"the verified checker covers certificates of kind {', '.join(COVERED)} at horizon 0 without conditions, "
            f"and this one is of kind {shown(certificate.kind)} at horizon {problem.horizon}"
        )
    if certificate.problem_digest != problem.digest:
        raise CertificateError(f"it is of problem {certificate.problem_digest!s:.12}…, not {problem.digest:.12}…")
    refuse_many_slots(problem.slots.tolist())
    body = read_priced_body(certificate.body)
    lines = [
        "lbopt-formal 1",
        f"loads {_listed(problem.base[:, 0].tolist())}",
        f"slots {_listed(problem.slots.tolist())}",
        f"sizes {_listed(problem.work[:, 0].tolist())}",
        f"must {_listed(int(flag) for flag in problem.must_admit.tolist())}",
        f"bound {certificate.bound}",
        f"scale {body.scale}",
        f"vectors {len(body.prices)}",
    ]
    vectors = ([vector.get(k, 0) for k in range(max(vector, default=-1) + 1)] for vector in body.prices)
    lines.extend(f"vector {_listed(vector)}" for vector in vectors)
    lines.append(f"nodes {len(body.nodes)}")
    for node in body.nodes:
        lines.append(f"node {node.first} {node.last} {node.prices} {len(node.tree or ())}")
        lines.extend(_records(node))
    return "\n".join([*lines, "end", ""])


def _records(node: Node) -> Iterator[str]:
    """Yield the records of a node's tree."""
    for record in node.tree or ():
        if isinstance(record, Branch):
            patterns = " ".join(f"pattern {_listed(pattern)}" for pattern in record.patterns)
            yield f"branch {record.worker} {record.prices} {len(record.patterns)} {patterns}".rstrip()
        elif isinstance(record, Placement):
            yield f"placement {record.kind} {record.prices} {int(record.waits)} {_listed(record.workers)}"
        elif isinstance(record, Refuted):
            yield f"refuted {record.prices}"


def _listed(numbers: Iterable[int]) -> str:
    """Return the length, then the numbers."""
    every = [str(number) for number in numbers]
    return " ".join([str(len(every)), *every])
