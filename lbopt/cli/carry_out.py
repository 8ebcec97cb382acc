"""How every study of the command line is carried out: its folder is checked first and written before anything is
printed, and Ctrl-C keeps what has ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from lbopt.studies.progress import Progress


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
    from lbopt.cli.console import ProgressBar, command_line, print_table, remark, say
    from lbopt.report.folder import check_target
    from lbopt.report.study_report import report_of, write_study_folder
    from lbopt.studies.registry import find_study

    study, report, command = find_study(name), report_of(name), command_line()
    folder = Path(out) if out else None
    if folder is not None:
        check_target(folder, study.format)
    with ProgressBar() as bar:
        outcome = study.run(config, bar, **execution) if run is None else run(bar)
    written = folder is not None and study.has_results(outcome)
    if folder is not None and written:  # before anything is printed: a closed pipe must not cost the study
        write_study_folder(name, outcome, folder, command)
    for line in report.heading(outcome):
        say(line)
    for table in report.tables(outcome):
        print_table(table)
    for line in report.lead(outcome):
        say(line)
    for note in outcome.notes:
        remark(f"note: {note}")
    if folder is not None and written:
        say(f"{report.written}: {folder / report.page if report.page else folder}")
    for line in report.warnings(outcome):
        remark(line)
    if outcome.interrupted:
        remark("interrupted: tables and report cover what was done until then")
        raise typer.Exit(130)
    if not study.holds(outcome):
        raise typer.Exit(1)
