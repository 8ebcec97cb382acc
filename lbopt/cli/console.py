"""What the verbs share in a terminal: tables, a progress bar with ETA, and the command that was given.

Names and texts may come from a file or from another machine. What in them would command the terminal is shown instead.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from lbopt import compile_progress
from lbopt.files import printable
from lbopt.table import Table


class Terminal(Console):
    """A console whose texts command nothing; colours and movements are those that rich makes itself."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return what is printed of something."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


#: Results go to standard output, progress and remarks to standard error. A pipe or file has no width to fit into.
out = Terminal(width=None if sys.stdout.isatty() else 180, markup=False, highlight=False)
err = Terminal(stderr=True, markup=False, highlight=False)


def say(text: str) -> None:
    """Print one line of result; names are printed as they are, and long lines are left to the terminal."""
    out.print(text, soft_wrap=True)


def remark(text: str) -> None:
    """Print one line to standard error."""
    err.print(text, soft_wrap=True)


def print_table(table: Table) -> None:
    """Print a report table between its title and its caption."""
    shown = RichTable(box=None, pad_edge=False, header_style="bold")
    for index, header in enumerate(table.headers):
        shown.add_column(Text(header), justify="left" if index == 0 else "right", overflow="fold", no_wrap=index == 0)
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    out.print(table.title, style="bold", soft_wrap=True)
    out.print(shown)
    out.print(table.caption, style="dim", soft_wrap=True)
    out.print()


def print_lines(title: str, lines: Iterable[tuple[str, str]], text: str = "") -> None:
    """Print what each of several things is, under a title and a text."""
    grid = RichTable.grid(padding=(0, 2))
    for what, is_so in lines:
        grid.add_row(Text(what, style="dim"), Text(is_so, overflow="fold"))
    out.print(title, style="bold", soft_wrap=True)
    if text:
        out.print(text, soft_wrap=True)
    out.print(grid)
    out.print()


def command_line() -> str:
    """Return the command as it was typed, ready to be pasted."""
    return "lbopt " + " ".join(shlex.quote(word) for word in sys.argv[1:])


class ProgressBar:
    """A bar per stage, with time left; lines in a log where there is no terminal."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description:<22}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=err,
        )
        self._task: TaskID | None = None
        self._kernels: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        if err.is_terminal:
            compile_progress.show_by(self._compiling)
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        compile_progress.show_by(None)
        self._bar.stop()

    def begin(self, what: str, total: int) -> None:
        """Start the bar of a stage."""
        self._task = self._bar.add_task(what, total=total)

    def advance(self, units: int = 1) -> None:
        """Move the present bar."""
        if self._task is not None:
            self._bar.advance(self._task, units)

    def _compiling(self, n: int, m: int) -> None:
        """Show a bar while kernels are compiled."""
        if self._kernels is None:
            self._kernels = self._bar.add_task("compiling kernel", total=m)
        self._bar.update(self._kernels, completed=min(n, m), total=m)
        if n > m:
            self._bar.remove_task(self._kernels)
            self._kernels = None
