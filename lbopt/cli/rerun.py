"""`lbopt rerun`: do it again, and name the first number that differs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from lbopt.studies.progress import Progress


class _Study(NamedTuple):
    """A study that a folder describes."""

    trace: str
    run: Callable[[Progress], Any]
    write: Callable[[Any, Path, str], None]


def rerun(
    folder: Annotated[Path, typer.Argument(help="Output folder of `lbopt gap`, of either side.")],
) -> None:
    """Repeat a gap study from its run.json and compare every number but the times.

    Exit code 1 if something differs.

    Example: `lbopt gap burstgpt-like --requests 2000 --states 10 --out again && lbopt rerun again`
    """
    from lbopt.cli.console import ProgressBar, remark, say
    from lbopt.exceptions import InputError
    from lbopt.report.gap_difference import first_difference
    from lbopt.report.provenance import provenance

    study, before = _study_of(folder)
    if before["interrupted"]:
        raise InputError(f"'{folder}' holds an interrupted study; run its command again: {before['command']}")
    with ProgressBar() as bar:
        outcome = study.run(bar)
    if outcome.interrupted:
        raise KeyboardInterrupt
    for name, now in outcome.trace.items():
        if before["trace"].get(name) != now:
            then = before["trace"].get(name)
            say(f"differs: the requests of '{study.trace}', {name}: {then} then, {now} now")
            raise typer.Exit(1)
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / "again"
        study.write(outcome, again, before["command"])
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


def _study_of(folder: Path) -> tuple[_Study, dict[str, Any]]:
    """Return the study of an output folder, and its run.json."""
    from lbopt.report import batch_gap_folder, gap_folder
    from lbopt.studies.batches import run_batches
    from lbopt.studies.gap import run_gap

    if gap_folder.format_of(folder) == batch_gap_folder.FORMAT:
        batches, before = batch_gap_folder.read_batch_run(folder)
        write = batch_gap_folder.write_batch_gap_folder
        return _Study(batches.requests.trace, lambda bar: run_batches(batches, bar), write), before
    config, before = gap_folder.read_run(folder)
    trace = config.scenario.requests.trace
    return _Study(trace, lambda bar: run_gap(config, bar), gap_folder.write_gap_folder), before
