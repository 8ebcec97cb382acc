"""Read observations from a CSV file or a published table, and refuse what no law can be fitted to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from lbopt.columns import number
from lbopt.exceptions import InputError
from lbopt.files import called, csv_table, read_text
from lbopt.hardware.fit.columns import Choice, choose
from lbopt.hardware.fit.law import Observations, Role, Rows, Variable
from lbopt.hardware.published import published_table

#: How a shipped table is named where a file may stand.
PUBLISHED = "published:"

#: A file of measurements is small; a larger one is something else.
LARGEST_FILE = 64 * 2**20

#: Beyond this, in either direction, a number is a slip of its unit, and squares of it would not be exact.
_EXTREME = 1e15

_Row = tuple[int, Mapping[str, str]]


def read_rows(source: str, x: str | None = None, y: str | None = None, group: str | None = None) -> Rows:
    """Read `source`: the path of a CSV, or published:NAME.

    Parameters
    ----------
    source
        A path, or published: and the name of a shipped table.
    x, y, group
        Columns to take; without them they are recognised by their names.

    Raises
    ------
    InputError
        A file that cannot be read as CSV; columns that are missing; entries that are no numbers, negative, or a
        response of zero, with the number of their line.
    """
    if source.startswith(PUBLISHED):
        text = published_table(source.removeprefix(PUBLISHED)).text
    else:
        text = _text(source)
    header, rows = _cells(source, text)
    choice = choose(source, header, x, y, group)
    parts: dict[str, list[_Row]] = {}
    for line, row in rows:
        parts.setdefault("" if choice.group is None else row[choice.group].strip(), []).append((line, row))
    groups = tuple(_observations(source, name, part, choice) for name, part in parts.items())
    return Rows(source, choice.response, _roles(choice), groups)


def _roles(choice: Choice) -> dict[Role, Variable]:
    if not choice.loads:
        return choice.regressors
    first, last = choice.loads[0].column, choice.loads[-1].column
    among = first if first == last else f"{first} … {last}"
    made: dict[Role, Variable] = {
        "x": Variable(f"max − min of {among}", "spread", "tokens"),
        "max_load": Variable(f"max of {among}", "max_load", "tokens"),
        "mean_load": Variable(f"mean of {among}", "mean_load", "tokens"),
    }
    return made | choice.regressors


def _observations(source: str, group: str, rows: list[_Row], choice: Choice) -> Observations:
    columns: dict[Role, list[float]] = {role: [] for role in _roles(choice)}
    y, labels, fleet = [], [], set()
    for line, row in rows:
        found = _number(source, line, choice.response, row[choice.response.column])
        if found <= 1 / _EXTREME:
            raise InputError(
                f"{source}, line {line}: {choice.response.column} is {row[choice.response.column].strip()}; "
                "expected a number above zero, since no step takes no time"
            )
        y.append(found)
        values = {role: _number(source, line, one, row[one.column]) for role, one in choice.regressors.items()}
        if choice.loads:
            loads = list(_worker_loads(source, line, row, choice))
            fleet.add(len(loads))
            made = {"x": max(loads) - min(loads), "max_load": max(loads), "mean_load": float(np.mean(loads))}
            values = {role: values.get(role, made[role]) for role in columns}
        if choice.workers is not None:
            fleet.add(_workers(source, line, choice.workers, row[choice.workers]))
        if "max_load" in values and "mean_load" in values and values["max_load"] < values["mean_load"] * (1 - 1e-9):
            raise InputError(f"{source}, line {line}: the heaviest load is below the mean load; are they exchanged?")
        for role, value in values.items():
            columns[role].append(value)
        labels.append(row[choice.label].strip() if choice.label else f"line {line}")
    return Observations(
        group=group,
        y=np.array(y, dtype=np.float64),
        columns={role: np.array(values, dtype=np.float64) for role, values in columns.items()},
        labels=tuple(labels),
        workers=fleet.pop() if len(fleet) == 1 else None,
    )


def _worker_loads(source: str, line: int, row: Mapping[str, str], choice: Choice) -> Iterator[float]:
    for one in choice.loads:
        cells = re.split(r"[;|\s]+", row[one.column].strip()) if one.stem == "loads" else [row[one.column]]
        for cell in cells:
            yield _number(source, line, one, cell)


def _workers(source: str, line: int, column: str, cell: str) -> int:
    value = _number(source, line, Variable(column, column, "other"), cell)
    if value < 1 or value != int(value):
        raise InputError(f"{source}, line {line}: {column} is '{cell.strip()}'; expected a whole number of at least 1")
    return int(value)


def _number(source: str, line: int, variable: Variable, cell: str) -> float:
    return variable.factor * number(
        f"{source}, line {line}: {variable.column}", cell, "a number of zero or more, at most 1e15", most=_EXTREME
    )


def _cells(source: str, text: str) -> tuple[list[str], list[_Row]]:
    header, rows = csv_table(text, source)
    return header, [(line, dict(zip(header, cells, strict=True))) for line, cells in rows]


def _text(source: str) -> str:
    if not source.strip():
        raise InputError(f"no file is named; give a CSV file, or {PUBLISHED}NAME for a shipped table")
    way_out = f"; give a CSV file, or {PUBLISHED}NAME for a shipped table"
    return read_text(source, called(source), largest=LARGEST_FILE, way_out=way_out)
