"""`View`: the tables of a class of results by name, and the function that draws it on one set of axes."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from lbopt.exceptions import InputError
from lbopt.spec import unknown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Shown = TypeVar("Shown")

#: Rows of a table in a notebook; `to_frame` has all.
ROWS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class View(Generic[Shown]):
    """What one class of results shows.

    Parameters
    ----------
    tables
        Functions that return a data frame, by the name of the table; the first is the default and the notebook's.
    draw
        Draws a result on axes; None where the class has no picture.
    """

    tables: Mapping[str, Callable[[Shown], pd.DataFrame]]
    draw: Callable[[Shown, Axes], None] | None

    def frame(self, shown: Shown, table: str | None) -> pd.DataFrame:
        """Return the named table, or the first."""
        name = next(iter(self.tables)) if table is None else table
        if name not in self.tables:
            raise unknown("table", name, self.tables)
        return self.tables[name](shown)

    def picture(self, shown: Shown, ax: Axes | None) -> Axes:
        """Draw on `ax`, or on the axes of a new pyplot figure, which a notebook shows."""
        if self.draw is None:
            raise InputError(f"a {type(shown).__name__} has no picture; to_frame() has its numbers")
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=(8.0, 4.5), layout="constrained")
            ax.grid(visible=True, alpha=0.25)
            ax.spines[["top", "right"]].set_visible(False)
        self.draw(shown, ax)
        return ax

    def html(self, shown: Shown) -> str:
        """Return the line of `repr` over the first rows of the first table."""
        frame = self.frame(shown, None)
        more = (
            "" if len(frame) <= ROWS_SHOWN else f"<p>{len(frame) - ROWS_SHOWN} more rows: <code>to_frame()</code></p>"
        )
        table = frame.head(ROWS_SHOWN).to_html(index=False, border=0, na_rep="", float_format="{:,.4g}".format)
        return f"<p><code>{html.escape(repr(shown))}</code></p>{table}{more}"
