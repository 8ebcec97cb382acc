"""How results show themselves: as a data frame, as a picture, as HTML in a notebook.

`Displayed` is the base of every result that a user holds. What a class shows is declared in `lbopt.report.views`, one
entry a class, because tables and pictures are made in the report room. The import below is the one that leads from a
low room up to `report`; the import contract in ``pyproject.toml`` names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from lbopt.report.views import View


class Displayed:
    """A result with `to_frame`, `plot` and an HTML form."""

    __slots__ = ()

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """Return one of the tables of this result as a data frame.

        Parameters
        ----------
        table
            Name of the table; None takes the first. An unknown name raises an error that lists the names.

        Raises
        ------
        InputError
            If there is no table of that name.
        """
        return self._view().frame(self, table)

    def plot(self, ax: Any = None) -> Any:
        """Draw this result and return the axes.

        Parameters
        ----------
        ax
            `matplotlib.axes.Axes` to draw on, which is also returned; None makes a new figure.
        """
        return self._view().picture(self, ax)

    def _repr_html_(self) -> str:
        return self._view().html(self)

    def _view(self) -> View[Any]:
        from lbopt.report.views import view_of

        return view_of(type(self).__name__)
