"""The rows of an item that has no tables of its own, as they are: means over seeds, in the width of a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt import numbers
from lbopt.studies.staggered import Averaged, StaggeredOutcome
from lbopt.table import Table

#: More rows than this are for the file.
SHOWN = 40
#: What a terminal has room for, in characters, and what stands between columns.
_WIDTH, _BETWEEN = 120, 2


@dataclass(frozen=True, slots=True)
class _Column:
    """A column; the words of its header stand below each other."""

    header: str
    cells: list[str]

    @property
    def width(self) -> int:
        return _BETWEEN + max(map(len, (*self.header.split("\n"), *self.cells)))


def other_tables(outcome: StaggeredOutcome, item: str) -> list[Table]:
    """Return tables for each kind of row, means over seeds; keys that are the same everywhere are in the caption."""
    kinds: dict[tuple[str, ...], list[Averaged]] = {}
    for row in outcome.averaged(item):
        kinds.setdefault(tuple(sorted(row.keys)), []).append(row)
    return [table for rows in kinds.values() for table in _tables(outcome, item, rows)]


def _tables(outcome: StaggeredOutcome, item: str, rows: list[Averaged]) -> list[Table]:
    """Return a table, or as many as it takes to show all quantities in the width of a terminal."""
    names = list(rows[0].keys)
    varied = [key for key in names if len({row.keys[key] for row in rows}) > 1] or names[:1]
    shown = rows[:SHOWN]
    keys = [_column(key, [str(row.keys[key]) for row in shown]) for key in varied]
    quantities = dict.fromkeys(of for row in rows for of in row.values)
    left = [_column(of, [_mean(row, of) for row in shown]) for of in quantities]
    found: list[Table] = []
    while left or not found:
        fit = 1
        while fit < len(left) and sum(one.width for one in (*keys, *left[: fit + 1])) <= _WIDTH:
            fit += 1
        columns, left = [*keys, *left[:fit]], left[fit:]
        found.append(
            Table(
                f"{item.capitalize()}, continued" if found else item.capitalize(),
                "As above." if found else _caption(outcome, item, rows, varied),
                tuple(column.header for column in columns),
                list(zip(*(column.cells for column in columns), strict=True)),
            )
        )
    return found


def _column(name: str, cells: list[str]) -> _Column:
    return _Column(name.replace("_", "\n"), cells)


def _caption(outcome: StaggeredOutcome, item: str, rows: list[Averaged], varied: list[str]) -> str:
    seeds = len(outcome.rows[item])
    said = [f"{'One seed' if seeds == 1 else f'Means over {seeds} seeds'}; intervals are in {item}.csv. Times in s."]
    alike = ", ".join(f"{key} {value}" for key, value in rows[0].keys.items() if key not in varied)
    if alike:
        said.append(f"Everywhere: {alike}.")
    if len(rows) > SHOWN:
        said.append(f"The first {SHOWN} of {len(rows)} rows; {item}.csv has all.")
    return " ".join(said)


def _mean(row: Averaged, quantity: str) -> str:
    value = row.values.get(quantity)
    return numbers.UNKNOWN if value is None else numbers.three(value.mean)
