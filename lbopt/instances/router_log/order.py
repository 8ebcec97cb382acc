"""Whether arrival, start and finish stand in order: few rows may not, and what spoils many of them is named."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances.router_log.clocks import Clock
from lbopt.instances.router_log.table import Table
from lbopt.instances.router_log.times import Times

#: Seconds by which a time may lie before the one that it follows.
TOLERANCE = 1e-3

#: Share of rows out of order from which on the log is refused.
LARGEST_SHARE = 1e-3

#: Tokens per second of one request; more or less is no decoding.
PACES = (0.2, 5000.0)
_LARGEST_ODD = 0.05

_QUARTER = 900.0


def out_of_order(table: Table, times: Times, kept: NDArray[np.bool_], clocks: dict[str, Clock]) -> NDArray[np.bool_]:
    """Return bool (N,), rows whose times are out of order, where they are few.

    Parameters
    ----------
    table
        The log.
    times
        Its times.
    kept
        bool (N,), the rows to look at.
    clocks
        Columns of "arrival", "begin" and "end", for errors.

    Raises
    ------
    InputError
        Where more than `LARGEST_SHARE` of the rows are out of order, or a whole number of quarter hours lies between
        two columns.
    """
    pairs = (
        ("arrival", "begin", times.start - times.arrival, "start"),
        ("begin", "end", times.finish - times.start, "finish"),
    )
    broken = np.zeros(len(table), dtype=bool)
    for earlier, later, gap, word in pairs:
        there = kept & ~np.isnan(gap)
        if not there.any():
            continue
        _refuse_zones(table, gap[there], clocks[earlier], clocks[later])
        late = there & (gap < -TOLERANCE)
        share = float(late.sum() / there.sum())
        last = bool(late[-1]) and table.ends_open
        if share > LARGEST_SHARE or last:
            row = len(table) - 1 if last and late.sum() == 1 else int(np.argmax(late))
            before = "arrival" if word == "start" else "start"
            raise InputError(
                f"{table.where(row)}: {word} ({clocks[later].name}) lies {-gap[row]:.6g} s before {before} "
                f"({clocks[earlier].name}), as in {int(late.sum()):,} of {int(there.sum()):,} rows; "
                f"{_cause(gap[there], share)}{table.hint_at(row)}"
            )
        broken |= late
    return broken


def _cause(gap: NDArray[np.float64], share: float) -> str:
    if share > 0.99:
        return "the two columns are swapped or count in different units; name them with --column"
    if float(np.ptp(gap[gap < -TOLERANCE])) < 60.0:
        return "the clocks of two machines differ; correct one, or name columns of one machine with --column"
    return "expected arrival <= start <= finish; name the columns with --column"


def _refuse_zones(table: Table, gap: NDArray[np.float64], earlier: Clock, later: Clock) -> None:
    """Refuse two columns of date-times between which a time zone lies.

    Parameters
    ----------
    table
        The log, for the error.
    gap
        float64, seconds from the one to the other.
    earlier, later
        The two columns.
    """
    if earlier.unit != "date-time" or later.unit != "date-time" or gap.size < 3 or earlier.name == later.name:
        return
    low, high = float(np.min(gap)), float(np.quantile(gap, 0.9))
    quarters = int(np.floor((low + TOLERANCE) / _QUARTER))
    if quarters == 0 or high - quarters * _QUARTER > _QUARTER or abs(quarters) > 14 * 4:
        return
    minutes = abs(quarters) * 15
    side = "behind" if quarters > 0 else "before"
    raise InputError(
        f"{table.source}: column {later.name!r} lies {minutes // 60} h {minutes % 60:02} min {side} column "
        f"{earlier.name!r} in every row; their zones differ: write both with a zone, or both in UTC"
    )


def odd_paces(table: Table, times: Times, finished: NDArray[np.bool_], steps: NDArray[np.float64]) -> str | None:
    """Return a note about requests that decode absurdly fast or slowly; refuse the log where they are many.

    Parameters
    ----------
    table, times
        The log and its times.
    finished
        bool (N,), the rows to look at.
    steps
        float64 (N,), decode steps.
    """
    if not finished.any():
        return None
    took = np.maximum(times.finish[finished] - times.start[finished], 1e-9)
    pace = steps[finished] / took
    odd = (pace < PACES[0]) | (pace > PACES[1])
    if odd.mean() > _LARGEST_ODD:
        row = int(np.flatnonzero(finished)[int(np.argmax(odd))])
        raise InputError(
            f"{table.where(row)}: {pace[odd][0]:,.4g} tokens a second, and {int(odd.sum()):,} of {odd.size:,} requests "
            f"decode outside {PACES[0]:g} to {PACES[1]:,.0f}; name the columns of start, finish and output: --column"
        )
    if odd.any():
        return f"{int(odd.sum()):,} requests decode outside {PACES[0]:g} to {PACES[1]:,.0f} tokens a second"
    return None
