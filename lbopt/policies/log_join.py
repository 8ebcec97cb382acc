"""Which request of a trace a row of a log is about: rows read strictly, and joined with the trace's requests.

A row is about the request of its place. Where the log says how long its requests were or when they came, that is
compared; where the rows agree in another order, and no two requests are alike, the log is put into the trace's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import SECONDS, column_of, unit_in
from lbopt.exceptions import InputError
from lbopt.files import csv_table, read_text
from lbopt.model import Trace

#: Quantities that say what a request is, and how well a column's name must fit at least.
_TOLD = {"prompt": 1, "output": 1, "arrival": 0}

#: Arrivals, in seconds after the first, are alike where they are within this.
_MILLISECOND = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class RequestsOfLog:
    """What a log says of its requests.

    Parameters
    ----------
    columns
        float64 (N,) by "prompt" and "output" (tokens) and "arrival" (s after the first), where the log has them.
    """

    columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def read(cls, columns: Mapping[str, Any], size: int, source: str) -> RequestsOfLog:
        """Return what columns of a file say of requests.

        Parameters
        ----------
        columns
            Columns of the file by name.
        size
            Rows of the log.
        source
            Named in errors.
        """
        found = {}
        for kind, least in _TOLD.items():
            name = column_of(kind, columns, least)
            if name is None:
                continue
            try:
                values = np.asarray(columns[name], dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError(f"{source}: {name} is not a column of numbers") from None
            if values.shape != (size,):
                raise InputError(f"{source} has {size} workers but {values.size} values of {name}")
            found[kind] = values * SECONDS[unit_in(name) or "s"] if kind == "arrival" else values
        return cls(found)

    def rows_of(self, trace: Trace, size: int, name: str) -> NDArray[np.int64] | None:
        """Return the row of each request, int64 (N,); None where the rows stand in the order of the requests.

        Parameters
        ----------
        trace
            The requests.
        size
            Rows of the log.
        name
            Of the log, for errors.

        Raises
        ------
        InputError
            Where it is not a log of these requests, or it cannot be told which row is whose.
        """
        if size != len(trace):
            raise InputError(
                f"{name} has {size:,} rows, but the trace has {len(trace):,} requests; expected one row each"
            )
        known: dict[str, NDArray[Any]] = {"prompt": trace.prompt, "output": trace.output}
        if trace.arrival is not None:
            known["arrival"] = trace.arrival
        both = [
            (kind, _key(kind, self.columns[kind]), _key(kind, known[kind])) for kind in known if kind in self.columns
        ]
        if not both:
            return None
        alike = np.logical_and.reduce([log == own for _, log, own in both])
        if alike.all():
            return None
        by_log = np.lexsort([log for _, log, _ in both])
        by_own = np.lexsort([own for _, _, own in both])
        what = ", ".join(kind for kind, _, _ in both)
        if all((log[by_log] == own[by_own]).all() for _, log, own in both):
            apart = np.logical_or.reduce([np.diff(own[by_own]) != 0 for _, _, own in both])
            if not apart.all():
                raise InputError(
                    f"{name} has the requests of the trace in another order, and {int((~apart).sum()):,} of them equal "
                    f"another one by {what}; sort it in the order of the trace"
                )
            rows = np.empty(size, dtype=np.int64)
            rows[by_own] = by_log
            return rows
        raise InputError(
            f"{int(alike.sum()):,} of {size:,} rows of {name} agree with the trace by {what}; expected a log of the "
            "trace's requests"
        )


def _key(kind: str, values: NDArray[Any]) -> NDArray[Any]:
    if kind != "arrival":
        return values
    rounded: NDArray[Any] = np.round((values - values.min()) / _MILLISECOND)
    return rounded


def csv_columns(file: Path, name: str) -> dict[str, list[str]]:
    """Return the columns of a CSV file as text; blank lines are skipped.

    Parameters
    ----------
    file
        The file, with a header.
    name
        What errors call it.

    Raises
    ------
    InputError
        Where a row is not as wide as the header, which then would be about other columns, or the header is repeated.
    """
    header, rows = csv_table(read_text(file, name), name)
    columns = zip(*(row for _, row in rows), strict=True)
    return {column: list(cells) for column, cells in zip(header, columns, strict=True)}
