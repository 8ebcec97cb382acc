"""Rows of measurements: which columns are read, and observations from them.

Which columns of a file are loads, times, throughputs and names: recognised by their headers, or named by the user.

A header is a stem and a unit: `tpot_p95_ms` is a TPOT in milliseconds, `spread_ktokens` a spread in thousands of
tokens. A load without a unit is in tokens, as everywhere here; a time without a unit is refused, since a factor of a
thousand would pass for a finding.

Read observations from a CSV file or a published table, and refuse what no law can be fitted to.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lbopt.columns import SECONDS, UNIT_OF, number, words_and_unit
from lbopt.exceptions import InputError
from lbopt.files import called, csv_table, listed, read_text, shown
from lbopt.hardware.fit.law import Kind, Observations, Role, Rows, Variable
from lbopt.hardware.published import published_table
from lbopt.spec import unknown

#: Units of a header: kind, and the factor to ktokens, milliseconds or tokens per second.
_UNITS: dict[str, tuple[Kind, float]] = {
    **{unit: ("time", 1e3 * seconds) for unit, seconds in SECONDS.items()},
    "tokens": ("tokens", 1e-3),
    "ktokens": ("tokens", 1.0),
    "mtokens": ("tokens", 1e3),
    "tok_s": ("throughput", 1.0),
    "ktok_s": ("throughput", 1e3),
}
_SPELLINGS = UNIT_OF | {unit: unit for unit in _UNITS} | {"tokens_per_second": "tok_s"}

#: Measures of imbalance, the preferred first: sum over workers of what they lack to the heaviest, and max − min.
MEASURES = ("imbalance", "spread")
RESPONSES: dict[str, Kind] = {"step_time": "time", "tpot": "time", "throughput": "throughput"}
_LABELS = ("label", "method", "policy", "router", "name")
_ONE_LOAD = re.compile(r"load_?\d+")


@dataclass(frozen=True, slots=True)
class Choice:
    """The columns that are read: the response, one a role, or loads of which the roles are made."""

    response: Variable
    regressors: dict[Role, Variable]
    loads: tuple[Variable, ...]
    group: str | None
    label: str | None
    workers: str | None


def variable_of(column: str) -> Variable:
    """Read a header; its kind is "other" where it has no unit and is not a load or a throughput."""
    words, unit = words_and_unit(column, _SPELLINGS, beside=frozenset())
    name = "_".join(words)
    if unit is not None:
        return Variable(column, name, *_UNITS[unit])
    if name in (*MEASURES, "max_load", "mean_load", "loads") or _ONE_LOAD.fullmatch(name):
        return Variable(column, name, "tokens", 1e-3)
    return Variable(column, name, "throughput" if name == "throughput" else "other")


def choose(
    source: str, header: Sequence[str], x: str | None = None, y: str | None = None, group: str | None = None
) -> Choice:
    """Return which columns of `header` to read.

    Parameters
    ----------
    header
        Names of its columns.
    x, y, group
        Columns of the load, the time and the group; None recognises them by their names.

    Raises
    ------
    InputError
        Where a named column is missing, none is recognised, or a time does not say its unit.
    """
    for named in (x, y, group):
        if named is not None and named not in header:
            raise unknown(f"column of {source}", named, header)
    found = [variable_of(column) for column in header]
    response = variable_of(y) if y is not None else _response(source, found)
    if response.kind == "other" and response.stem.startswith(("step_time", "tpot")):
        raise InputError(
            f"{source}: column {shown(response.column, 80)} does not say its unit; end its name in _ms, _us or _seconds"
        )
    loads: tuple[Variable, ...] = ()
    regressors: dict[Role, Variable] = {}
    if x is not None:
        if x == response.column:
            raise InputError(f"{source}: column '{x}' is both --x and --y; name two different ones")
        regressors["x"] = variable_of(x)
    else:
        regressors, loads = _loads(found)
        if not regressors and not loads:
            raise _missing(source, header, "load", (*MEASURES, "max_load", "loads"), "_tokens", "--x")
    low = {column.strip().lower(): column for column in header}
    label = next((low[name] for name in _LABELS if name in low), None)
    return Choice(response, regressors, loads, group or low.get("group"), label, low.get("workers"))


def _response(source: str, found: Sequence[Variable]) -> Variable:
    for stem in RESPONSES:
        for one in found:
            if one.stem == stem or one.stem.startswith(f"{stem}_"):
                return one
    header = [one.column for one in found]
    raise _missing(source, header, "step time, TPOT or throughput", tuple(RESPONSES), "_ms or _tok_s", "--y")


def _loads(found: Sequence[Variable]) -> tuple[dict[Role, Variable], tuple[Variable, ...]]:
    """Return the columns of the roles, and those of single workers' loads, from which missing roles can be made."""
    tokens = [one for one in found if one.kind == "tokens"]
    roles: dict[Role, Variable] = {}
    measure = next((one for stem in MEASURES for one in tokens if one.stem == stem), None)
    if measure is not None:
        roles["x"] = measure
    names: tuple[Role, ...] = ("max_load", "mean_load")
    for role in names:
        column = next((one for one in tokens if one.stem == role), None)
        if column is not None:
            roles[role] = column
    single = tuple(one for one in tokens if _ONE_LOAD.fullmatch(one.stem))
    lists = tuple(one for one in tokens if one.stem == "loads")
    return roles, single if len(single) > 1 else lists


def _missing(source: str, header: Sequence[str], what: str, names: Sequence[str], unit: str, option: str) -> InputError:
    near = {column: difflib.get_close_matches(variable_of(column).stem, names, n=1) for column in header}
    meant = next((f"; did {shown(column)} mean {match[0]}?" for column, match in near.items() if match), "")
    return InputError(
        f"{source} has no column of {what} ({', '.join(names)}, with a unit such as {unit}); "
        f"it has {listed(header)}: name one with {option}{meant}"
    )


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
