"""Which columns of a file are loads, times, throughputs and names: recognised by their headers, or named by the user.

A header is a stem and a unit: `tpot_p95_ms` is a TPOT in milliseconds, `spread_ktokens` a spread in thousands of
tokens. A load without a unit is in tokens, as everywhere here; a time without a unit is refused, since a factor of a
thousand would pass for a finding.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lbopt.columns import SECONDS, UNIT_OF, words_and_unit
from lbopt.exceptions import InputError
from lbopt.files import listed, shown
from lbopt.hardware.fit.law import Kind, Role, Variable
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
