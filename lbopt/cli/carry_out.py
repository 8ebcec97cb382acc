"""What every study of the command line does around its run: the folder is checked first, written before anything is
printed, and Ctrl-C keeps what has ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer

if TYPE_CHECKING:
    from lbopt.studies.progress import Progress
    from lbopt.table import Table


class Outcome(Protocol):
    """What a study found."""

    @property
    def notes(self) -> list[str]:
        """Sentences for the user."""

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""


Found = TypeVar("Found", bound=Outcome)


def carry_out(
    run: Callable[[Progress], Found],
    *,
    out: str | Path | None,
    format: str,
    write: Callable[[Found, Path, str], None],
    tables: Callable[[Found], list[Table]],
    anything: Callable[[Found], object],
    written: str = "tables and pictures",
) -> None:
    """Run a study with a bar, write its folder, print its tables and notes; exit 130 where Ctrl-C ended it.

    Parameters
    ----------
    run, write, tables
        The study, its folder of `format`, and what the terminal shows.
    out
        The folder; None writes none.
    anything
        Whether the outcome holds anything to write.
    written
        What the last line calls the contents of the folder.
    """
    from lbopt.cli.console import ProgressBar, command_line, print_table, remark, say
    from lbopt.report.folder import check_target

    folder = Path(out) if out else None
    if folder is not None:
        check_target(folder, format)
    with ProgressBar() as bar:
        outcome = run(bar)
    if folder is not None and anything(outcome):  # before anything is printed: a closed pipe must not cost the study
        write(outcome, folder, command_line())
    for table in tables(outcome):
        print_table(table)
    for note in outcome.notes:
        remark(f"note: {note}")
    if folder is not None and anything(outcome):
        say(f"{written}: {folder}")
    if outcome.interrupted:
        raise typer.Exit(130)
