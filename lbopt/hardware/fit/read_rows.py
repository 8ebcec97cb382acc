"""Read observations from a CSV file or a published table, and refuse what no law can be fitted to."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hardware.fit.columns import Choice, choose
from lbopt.hardware.fit.law import Role
from lbopt.hardware.fit.observations import Observations, Rows, Variable
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
    where = f"{source}, line {line}: {variable.column}"
    try:
        value = float(cell)
    except ValueError:
        raise InputError(f"{where} is '{cell.strip()[:40]}'; expected a number") from None
    if not math.isfinite(value) or not 0 <= value <= _EXTREME:
        raise InputError(f"{where} is {cell.strip()}; expected a finite number of zero or more, at most 1e15")
    return value * variable.factor


def _cells(source: str, text: str) -> tuple[list[str], list[_Row]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    rows: list[_Row] = []
    header: list[str] = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                twice = next((name for name in header if header.count(name) > 1), None)
                if twice is not None:
                    raise InputError(f"{source} has the column '{twice}' twice; every column needs a name of its own")
                continue
            if len(cells) != len(header):
                raise InputError(f"{source}, line {reader.line_num}: {len(cells)} entries under {len(header)} columns")
            rows.append((reader.line_num, dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise InputError(f"{source}, line {reader.line_num}: not CSV: {error}") from None
    if not rows:
        raise InputError(
            f"{source} has {'a header but no rows' if header else 'no rows'}; expected a CSV with a header"
        )
    return header, rows


def _text(source: str) -> str:
    path = Path(source)
    try:
        if not source.strip():
            raise InputError(f"no file is named; give a CSV file, or {PUBLISHED}NAME for a shipped table")
        if path.is_dir():
            raise InputError(f"{source} is a folder; expected a CSV file, or {PUBLISHED}NAME")
        if path.exists() and not path.is_file():
            raise InputError(f"{source} is a device or a pipe; expected a CSV file")
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{source} has {path.stat().st_size:,} bytes; expected at most {LARGEST_FILE:,}")
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        raise InputError(
            f"there is no file {source}; give a CSV file, or {PUBLISHED}NAME for a shipped table"
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{source[:200]!r} cannot be read: {reason}") from None
    if not data.strip():
        raise InputError(f"{source} is empty; expected a CSV with a header")
    if b"\0" in data:
        raise InputError(f"{source} is binary; expected a CSV file as UTF-8 text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{source}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8 text") from None
