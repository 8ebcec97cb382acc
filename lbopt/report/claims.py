"""Printed statements beside ours: the rows of claims.csv, and the count of verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lbopt.studies.printed import NO_ANSWER, VERDICTS
from lbopt.table import Column, Table


def _finite(end: float) -> float | None:
    return None if math.isinf(end) else end


def claim_columns(about: Sequence[str], runs: str) -> tuple[Column, ...]:
    """Return the columns of a printed statement; an open end of its range is empty.

    Parameters
    ----------
    about
        What of a question says what it is of; "unit" is the print's.
    runs
        What our values are one each of.
    """
    return (
        *(Column(name, of=f"question.{'printed.' * (name == 'unit')}{name}") for name in about),
        Column("printed", "as the source has it", of="question.printed.text"),
        Column("printed_low", "lower end of what agrees", of=lambda _, one: _finite(one.question.printed.low)),
        Column("printed_high", "upper end of what agrees", of=lambda _, one: _finite(one.question.printed.high)),
        Column("ours", "mean", of=lambda _, one: one.ours and one.ours.mean),
        Column("low", "end of its 95 % interval", of=lambda _, one: one.ours and one.ours.low),
        Column("high", "end of its 95 % interval", of=lambda _, one: one.ours and one.ours.high),
        Column(runs, "that can tell", of=lambda _, one: len(one.values)),
        Column("verdict", "on all of the interval"),
    )


def count_table(caption: str, first: str, groups: Mapping[str, Sequence[str]], last: str) -> Table:
    """Return how many statements of each group got which verdict.

    Parameters
    ----------
    groups
        What is said of each statement, by the name of the group.
    last
        Header of the last column: "all", or of those that have none of the verdicts.
    """
    columns, rows = (*VERDICTS, NO_ANSWER), []
    for name, said in groups.items():
        counts = [said.count(one) for one in columns]
        rows.append((name, *map(str, counts), str(len(said) - (0 if last == "all" else sum(counts)))))
    title = f"Verdicts by {first}" if last == "all" else "Verdicts"
    return Table(title, caption, (first, *columns, last), rows)
