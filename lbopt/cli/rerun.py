"""`lbopt rerun`: do it again, and name the first number that differs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer


def rerun(
    folder: Annotated[Path, typer.Argument(help="Output folder of `lbopt gap`.")],
) -> None:
    """Repeat a gap study from its run.json and compare every number but the times.

    Exit code 1 if something differs.

    Example: `lbopt gap burstgpt-like --requests 2000 --states 10 --out again && lbopt rerun again`
    """
    from lbopt.cli.console import ProgressBar, remark, say
    from lbopt.exceptions import InputError
    from lbopt.report.gap_difference import first_difference
    from lbopt.report.gap_folder import read_run, write_gap_folder
    from lbopt.report.provenance import provenance
    from lbopt.studies.gap import run_gap

    config, before = read_run(folder)
    if before["interrupted"]:
        raise InputError(f"'{folder}' holds an interrupted study; run its command again: {before['command']}")
    with ProgressBar() as bar:
        outcome = run_gap(config, bar)
    if outcome.interrupted:
        raise KeyboardInterrupt
    for name, now in outcome.trace.items():
        if before["trace"].get(name) != now:
            then = before["trace"].get(name)
            say(f"differs: the requests of '{config.scenario.requests.trace}', {name}: {then} then, {now} now")
            raise typer.Exit(1)
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / "again"
        write_gap_folder(outcome, again, before["command"])
        difference = first_difference(folder, again)
    if difference is None:
        say("identical: every number but the times")
        return
    say(f"differs: {difference}")
    now = provenance(before["command"])["versions"]
    for name, version in before["versions"].items():
        if now.get(name) != version:
            remark(f"note: {name} was {version}, is {now.get(name, 'missing')}")
    raise typer.Exit(1)
