"""A table of text: title, one line of explanation, headers and rows. How it is shown is the caller's choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table ready to be shown.

    Parameters
    ----------
    title
        Shown above the table.
    caption
        One line of explanation, shown below it.
    headers
        One text a column.
    rows
        One text a cell; every row has as many cells as there are headers.
    """

    title: str
    caption: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
