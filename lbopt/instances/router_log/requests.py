"""The requests of a file that is no trace of a known format: prompt, output and arrival, by the recogniser of logs.

Clients, gateways and engines write many files; whatever serves an audit serves as a trace, and a client's file, which
has no worker, serves as a trace alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances.readers.records import Rows
from lbopt.instances.readers.units import unit_of
from lbopt.instances.readers.values import relative_seconds
from lbopt.instances.router_log.endings import FINISHED, UNKNOWN, read_endings
from lbopt.instances.router_log.guess import Chooser
from lbopt.instances.router_log.quantities import Clock, read_clock, read_counts
from lbopt.instances.router_log.read import open_log


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """The requests of a file, and how they were read.

    Parameters
    ----------
    rows
        The requests, without those that failed.
    format
        Name of the export.
    columns
        Column by quantity: prompt, output and, where there is one, arrival.
    """

    rows: Rows
    format: str
    columns: dict[str, str]


def read_requests(
    path: str | os.PathLike[str], columns: Mapping[str, str], unit: str | None, *, skip_malformed: bool
) -> Requests:
    """Read the requests of a file.

    Parameters
    ----------
    columns
        Column by quantity where names are not recognised, as in `read_router_log`.
    unit
        Of the arrival times, whatever the file says.
    skip_malformed
        Whether rows without prompt or arrival are left out and counted.

    Raises
    ------
    InputError
        Where the file cannot be read, or does not say the tokens of its requests.
    """
    chooser = open_log(path, dict(columns))
    table = chooser.table
    prompt_at, output_at = chooser.need("prompt"), chooser.need("output")
    arrival_at = chooser.find("arrival") or chooser.find("start")
    said, notes = read_endings(table, chooser.find("status"), chooser.find("error"))
    failed = (said != "") & (said != FINISHED) & (said != UNKNOWN)
    (prompt, no_prompt), (output, _) = read_counts(chooser, prompt_at), read_counts(chooser, output_at)
    names = {"prompt": prompt_at.name, "output": output_at.name}
    lacking, arrival, found = no_prompt, None, ""
    if arrival_at is not None:
        names["arrival"] = arrival_at.name
        clock = read_clock(chooser, arrival_at, "arrival", absolute=True)
        lacking = lacking | np.isnan(clock.raw)
        arrival, found = _seconds(clock, unit, ~failed & ~lacking, chooser)
    kept = ~failed & ~lacking
    if (wrong := lacking & ~failed).any() and not skip_malformed:
        row = int(np.argmax(wrong))
        what = "prompt" if no_prompt[row] else "arrival"
        raise InputError(f"{table.where(row)}: no {what}; expected one in every row{table.hint_at(row)}")
    left_out = dict(table.left_out)
    words, counts = np.unique(said[failed].astype(np.str_), return_counts=True)
    left_out.update(zip(words.tolist(), counts.tolist(), strict=True))
    rows = Rows(
        prompt=prompt[kept],
        output=output[kept],
        arrival=arrival,
        malformed=int(wrong.sum()),
        unit=found,
        left_out=left_out,
        notes=(*table.notes, *notes),
    )
    return Requests(rows=rows, format=chooser.export.name, columns=names)


def _seconds(
    clock: Clock, unit: str | None, kept: NDArray[np.bool_], chooser: Chooser
) -> tuple[NDArray[np.float64], str]:
    """Return the seconds of the rows that are kept since the first of them, and the unit in the file.

    Parameters
    ----------
    clock
        The column of arrivals.
    unit
        The unit that an option names.
    kept
        bool (N,), the rows that are requests.
    chooser
        The table, for errors.
    """
    found = ""
    if clock.unit != "date-time":
        known = unit or (clock.unit if clock.said == "name" else None)
        raw = clock.raw[kept]
        found = known or unit_of(raw, clock.unit or "s", clock.name, chooser.table.source, guessed=True)
        clock.unit = found
    return relative_seconds(clock.nanoseconds()[kept]), found
