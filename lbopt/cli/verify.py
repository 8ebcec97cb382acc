"""`lbopt verify`: check a result against its problem with code that shares nothing with the solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def verify(
    problem: Annotated[Path, typer.Argument(help="The step problem, JSON.")],
    result: Annotated[Path, typer.Argument(help="The result, JSON as `lbopt solve --out` writes it.")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also where a claim on the answer is not established.")
    ] = False,
    formal: Annotated[
        bool,
        typer.Option("--formal", help="Also ask the checker that is proved correct in Coq; `make proofs` builds it."),
    ] = False,
) -> None:
    """Check a result in exact integers and say which of its claims are established.

    Exit code 1 if a claim is false. A bound that is only claimed, because the file holds no certificate for it, is
    listed as not verified; with --strict that is exit code 1 as well. Solver, seconds and stop reason cannot be
    verified. With --formal the certificate also has to satisfy the verified checker, or the exit code is 1.

    Example: `lbopt solve examples/one_step.json --out r.json && lbopt verify examples/one_step.json r.json`
    """
    from lbopt import CertificateError, Result, StepProblem
    from lbopt import verify as check
    from lbopt.cli.console import remark, say
    from lbopt.solvers.certificates.formal import formal_bound

    chosen = StepProblem.from_json(problem)
    claimed = Result.from_json(result)
    try:
        report = check(chosen, claimed)
        proved = formal_bound(chosen, claimed) if formal else None
    except CertificateError as error:
        remark(f"rejected: {error}")
        raise typer.Exit(1) from None
    say(str(report))
    if proved is not None:
        say(f"established: no assignment is below {proved}, by the verified checker")
    if strict and (report.unverified or not report.bound_established):
        raise typer.Exit(1)
