"""How every study of the command line is carried out: its folder is checked first and written before anything is
printed, and Ctrl-C keeps what has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from lbopt.studies.progress import Progress
    from lbopt.table import Table


def carry_out(
    name: str,
    config: Any,
    out: str | Path | None,
    run: Callable[[Progress], Any] | None = None,
    **execution: Any,
) -> None:
    """Run a study with a progress bar, write its folder, print its tables and notes.

    Exits with 130 where Ctrl-C ended the run, and with 1 where the answer is no.

    Parameters
    ----------
    name
        The study's, a key of `STUDIES`.
    out
        The output folder; None or an empty text writes none.
    run
        Takes the place of the study's own `run`, where that needs more than the configuration.
    execution
        Keywords of `run`: where tasks run and where their results are kept.
    """
    from lbopt.cli.console import ProgressBar, command_line
    from lbopt.report.study_report import report_of, write_study_folder
    from lbopt.studies.registry import find_study

    study, report, command = find_study(name), report_of(name), command_line()
    folder = target(out, study.format)
    with ProgressBar() as bar:
        outcome = study.run(config, bar, **execution) if run is None else run(bar)
    written = folder if study.has_results(outcome) else None

    def told() -> Told:
        place = written / report.page if written and report.page else written
        return Told(
            tables=report.tables(outcome),
            heading=report.heading(outcome),
            lead=report.lead(outcome),
            notes=outcome.notes,
            written=f"{report.written}: {place}" if written else "",
            warnings=report.warnings(outcome),
            interrupted=outcome.interrupted,
            holds=study.holds(outcome),
        )

    conclude(written, lambda place: write_study_folder(name, outcome, place, command), told)


def target(out: str | Path | None, format: str) -> Path | None:
    """Return the output folder, if there is one, checked before any work is done."""
    from lbopt.report.folder import check_target

    folder = Path(out) if out else None
    if folder is not None:
        check_target(folder, format)
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a verb tells at its end.

    Parameters
    ----------
    heading, lead
        Lines above and below the tables.
    notes
        What else there is to know, on standard error.
    written
        The line that says what lies where.
    warnings
        Lines after everything else that need attention.
    holds
        Whether the answer is yes.
    """

    tables: Sequence[Table]
    heading: Sequence[str] = ()
    lead: Sequence[str] = ()
    notes: Sequence[str] = ()
    written: str = ""
    warnings: Sequence[str] = ()
    interrupted: bool = False
    holds: bool = True


def conclude(folder: Path | None, write: Callable[[Path], None], tell: Callable[[], Told]) -> None:
    """Write the folder, if there is one, then print: a closed pipe does not cost the files, nor a full disk the tables.

    Exits with 130 where Ctrl-C ended the run, and with 1 where the answer is no.
    """
    from lbopt.cli.console import print_table, remark, say

    try:
        if folder is not None:
            write(folder)
    finally:
        told = tell()
        for line in told.heading:
            say(line)
        for table in told.tables:
            print_table(table)
        for line in told.lead:
            say(line)
        for note in told.notes:
            remark(f"note: {note}")
    if told.written:
        say(told.written)
    for line in told.warnings:
        remark(line)
    if told.interrupted:
        remark("interrupted: tables and report cover what was done until then")
        raise typer.Exit(130)
    if not told.holds:
        raise typer.Exit(1)
