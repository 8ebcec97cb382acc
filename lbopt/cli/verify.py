"""`lbopt verify`: check a result against its problem with code that shares nothing with the solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def verify(
    problem: Annotated[Path, typer.Argument(help="The step problem, JSON.")],
    result: Annotated[Path, typer.Argument(help="The result, JSON as `lbopt solve --out` writes it.")],
) -> None:
    """Check a result in exact integers and say which of its claims are established.

    Exit code 1 if a claim is false.

    Example: `lbopt solve examples/one_step.json --out r.json && lbopt verify examples/one_step.json r.json`
    """
    from lbopt import CertificateError, Result, StepProblem
    from lbopt import verify as check
    from lbopt.cli.console import remark, say

    chosen = StepProblem.from_json(problem)
    try:
        report = check(chosen, Result.from_json(result))
    except CertificateError as error:
        remark(f"rejected: {error}")
        raise typer.Exit(1) from None
    say(str(report))
