"""Rows with one id: the same row written twice, attempts of which all but the last were in vain, or a wrong column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances.router_log.distinct import coded
from lbopt.instances.router_log.log import FINISHED, PREEMPTED, RETRIED
from lbopt.instances.router_log.table import Table
from lbopt.instances.router_log.times import Times

#: Share of wholly identical rows from which on a log without ids is refused.
LARGEST_IDENTICAL = 0.01


def first_of_each(table: Table) -> NDArray[np.bool_]:
    """Return bool (N,), which rows are not wholly identical to an earlier one."""
    seen: set[tuple[str, ...]] = set()
    fresh = np.zeros(len(table), dtype=bool)
    for index, row in enumerate(zip(*table.columns.values(), strict=True)):
        if row not in seen:
            seen.add(row)
            fresh[index] = True
    return fresh


def identical_note(table: Table) -> str | None:
    """Return a note about identical rows of a log without ids; refuse more than `LARGEST_IDENTICAL` of them."""
    again = ~first_of_each(table)
    count = int(again.sum())
    if count > LARGEST_IDENTICAL * len(table):
        raise InputError(
            f"{table.where(int(np.argmax(again)))} is identical to an earlier one, as are {count:,} of {len(table):,}; "
            "without a column of ids they may be doubled rows: name it, --column id=NAME"
        )
    return f"{count:,} rows are identical to another; without ids they are kept as requests" if count else None


def settle_attempts(
    table: Table,
    rows: NDArray[np.int64],
    ids: list[str],
    times: Times,
    worker: NDArray[np.int64],
    ending: NDArray[np.object_],
) -> list[str]:
    """Mark all but the last attempt of an id as retried (`ending` is changed in place), and return notes.

    Parameters
    ----------
    table
        The log, for errors.
    rows
        int64 (K,), the rows to look at.
    ids
        (N,), never shown.
    times
        The times of all rows.
    worker
        int64 (N,).
    ending
        (N,), of `ENDINGS`.
    """
    _, codes = coded([ids[row] for row in rows])
    several = np.bincount(codes)[codes] > 1
    chosen = rows[several]
    order = np.lexsort((times.start[chosen], codes[several]))
    chosen, groups = chosen[order], codes[several][order]
    in_turn = 0
    for group in np.split(chosen, np.flatnonzero(np.diff(groups)) + 1) if chosen.size else []:
        finished = 0
        for place, row in enumerate(group[:-1]):
            if ending[row] != FINISHED:
                ending[row] = ending[row] if ending[row] == PREEMPTED else RETRIED
                continue
            later = group[place + 1 :]
            overlapping = later[times.start[later] < times.finish[row]]
            for other in overlapping:
                if ending[other] == FINISHED and worker[other] != worker[row]:
                    raise InputError(
                        f"{table.where(int(row))} and {table.where(int(other)).rsplit(', ', 1)[1]} have one id, and "
                        "both finished on different workers at the same time; ids are not unique per request: name "
                        "the column of the ids, --column id=NAME"
                    )
            if overlapping.size:
                ending[row] = RETRIED
            else:
                finished += 1
        in_turn += bool(finished)
    return [f"{in_turn:,} ids name several finished requests, one after the other"] if in_turn else []
