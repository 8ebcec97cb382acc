"""`lbopt check`: does the theory hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli import options, running


def check(
    claims: Annotated[
        list[str] | None,
        typer.Argument(help="Claims by name, each with a regime of your own if wanted: `theorem-2:G=16,p=0.2`."),
    ] = None,
    list_claims: Annotated[bool, typer.Option("--list", help="Show the claims and leave.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Check all claims.")] = False,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Half an hour with tight intervals, or a few minutes.")
    ] = False,
    seed: options.Seed = 0,
    engine: running.Engine = "serial",
    store: running.StorePath = None,
    collect_only: running.CollectOnly = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the report.")] = None,
) -> None:
    """Check theorems and lemmas, as printed and as corrected, and say of each whether it holds.

    With --out, writes report.html, theory.md, findings.csv, a JSON file per counterexample (`lbopt solve` opens it)
    and run.json. Exit code 1 if a verdict is not the one that the ledger expects.

    Example: `lbopt check lemma-1-printed --seed 1 --out my-check`
    """
    from lbopt.cli.console import ProgressBar, command_line, print_table, remark, say
    from lbopt.report.folder import check_target
    from lbopt.report.theory_folder import FORMAT, write_theory_folder
    from lbopt.report.theory_tables import finding_table, ledger_table, verdict_lead, verdict_table
    from lbopt.studies.check import CheckConfig, run_check

    if list_claims:
        print_table(ledger_table())
        return
    level = "full" if full else "quick"
    config = CheckConfig.of(claims or [], everything=everything, level=level, seed=seed)
    if out is not None:
        check_target(out, FORMAT)
    with ProgressBar() as bar:
        outcome = run_check(config, bar, store=store, engine=engine, collect_only=collect_only)
    if out is not None:  # before anything is printed: a closed pipe must not cost the check
        write_theory_folder(outcome, out, command_line())
    if len(outcome.claims) <= 3:
        for one in outcome.claims:
            print_table(finding_table(one))
    print_table(verdict_table(outcome))
    say(verdict_lead(outcome))
    for note in outcome.notes:
        remark(f"note: {note}")
    if out is not None:
        say(f"report: {out / 'report.html'}")
    if outcome.interrupted:
        raise typer.Exit(130)
    if not all(one.as_expected for one in outcome.claims):
        raise typer.Exit(1)
