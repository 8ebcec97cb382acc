"""`lbopt check`: does the theory hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli import options, running
from lbopt.exceptions import InputError


def check(
    claims: Annotated[
        list[str] | None,
        typer.Argument(help="Claims by name, each with a regime of your own if wanted: `theorem-2:G=16,p=0.2`."),
    ] = None,
    list_claims: Annotated[bool, typer.Option("--list", help="Show the claims and leave.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Check all claims.")] = False,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Half an hour with tight intervals, or a minute.")
    ] = False,
    seed: options.Seed = 0,
    engine: running.Engine = "serial",
    workers: Annotated[
        int | None, typer.Option(help="Processes that measure side by side; short for `--engine joblib:jobs=N`.")
    ] = None,
    store: running.StorePath = None,
    collect_only: running.CollectOnly = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the report.")] = None,
) -> None:
    """Check theorems and lemmas, as printed and as corrected, and say of each whether it holds.

    With --out, writes report.html, theory.md, findings.csv, a JSON file per counterexample (`lbopt solve` opens it)
    and run.json. Exit code 1 if a verdict is not the one that the ledger expects.

    Example: `lbopt check lemma-1-printed --seed 1 --out my-check`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.cli.console import print_table
    from lbopt.report.theory_tables import ledger_table
    from lbopt.studies.check import CheckConfig

    if list_claims:
        print_table(ledger_table())
        return
    if workers is not None:
        engine = _side_by_side(workers, engine)
    level = "full" if full else "quick"
    config = CheckConfig.of(claims or [], everything=everything, level=level, seed=seed)
    carry_out("check", config, out, store=store, engine=engine, collect_only=collect_only)


def _side_by_side(workers: int, engine: str) -> str:
    """Return the engine of so many processes; it is refused beside an engine that was named."""
    if workers < 1:
        raise InputError(f"--workers is {workers}; expected the number of processes, 1 or more")
    if engine != "serial":
        raise InputError(f"--workers {workers} and --engine {engine} both say where tasks run; give one of them")
    return "serial" if workers == 1 else f"joblib:jobs={workers}"
