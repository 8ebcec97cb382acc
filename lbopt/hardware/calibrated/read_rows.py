"""A user's own measured steps: a CSV with a row for every batch and context that was measured on one engine.

Columns that are needed: running, context_tokens, and step_time_ms (or step_time_us, step_time_seconds). device, model,
devices, tp and experts are taken from the row where the file has them, else from what is asked about. kv_bytes,
weight_bytes and common_bytes left out are those of the model's card; prompt_share, accepted, drafted and overlap are 0,
1, 1 and 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lbopt.columns import SECONDS, number, unit_in
from lbopt.exceptions import InputError
from lbopt.files import called, csv_table, listed, read_text
from lbopt.hardware.cards import model_card
from lbopt.hardware.published import MeasuredStep
from lbopt.hardware.step_time.step_work import DecodeStep

_TIMES = ("step_time_us", "step_time_ms", "step_time_seconds")
_NEEDED = ("running", "context_tokens")
_NUMBERS = ("prompt_share", "accepted", "drafted")
_FORMATS = {"kv_bytes": "kv_bytes", "weight_bytes": "expert_bytes", "common_bytes": "common_bytes"}
_WHOLE = ("devices", "tp")
_TEXT = ("device", "model", "experts")
_OTHER = ("overlap",)

#: Standard deviation of the logarithm of a measured step: a mean over many steps is surer than a published digit.
_DOUBT = 0.02

#: A file of measurements is small; a larger one is something else.
_LARGEST = 2**20


def read_measured_rows(file: str | Path, asked: DecodeStep) -> tuple[MeasuredStep, ...]:
    """Return the measured steps of a file.

    Parameters
    ----------
    asked
        The step that a forecast is wanted of: device, model and fleet of rows that do not say.

    Raises
    ------
    InputError
        A file that is no such table, with the column or the line and the way out.
    """
    name = f"'{called(file)}'"
    header, rows = csv_table(read_text(file, name, largest=_LARGEST), name)
    known = {*_TIMES, *_NEEDED, *_NUMBERS, *_FORMATS, *_WHOLE, *_TEXT, *_OTHER}
    unknown = [column for column in header if column not in known]
    if unknown:
        raise InputError(f"{name} has an unknown column {listed(unknown)}; known are {', '.join(sorted(known))}")
    missing = [column for column in _NEEDED if column not in header]
    times = [column for column in header if column in _TIMES]
    if missing or len(times) != 1:
        if times and not missing:
            what = f"{len(times)} columns of a step's time, {' and '.join(times)}"
        else:
            what = f"no column {' and no '.join(missing or ['of a step time'])}"
        raise InputError(f"{name} has {what}; it needs running, context_tokens and one of {', '.join(_TIMES)}")
    return tuple(
        _step(f"{name}, line {line}", dict(zip(header, cells, strict=True)), times[0], asked) for line, cells in rows
    )


def _step(where: str, row: Mapping[str, str], time: str, asked: DecodeStep) -> MeasuredStep:
    model = row.get("model") or asked.model
    card = model_card(model)
    sizes = {"kv_bytes": asked.kv_bytes, "expert_bytes": asked.expert_bytes, "common_bytes": asked.common_bytes}
    if model != asked.model:
        sizes = {
            "kv_bytes": card.quantities["kv_bytes"].value,
            "expert_bytes": card.quantities["weight_bytes"].value,
            "common_bytes": card.common_bytes.value,
        }
    sizes |= {field: _number(where, column, row[column]) for column, field in _FORMATS.items() if row.get(column)}
    counts = {column: _number(where, column, row[column]) for column in _WHOLE if row.get(column)}
    for column, value in counts.items():
        if value != int(value):
            raise InputError(f"{where}: {column} is {value:g}; expected a whole number")
    experts = row.get("experts") or ("parallel" if asked.expert_parallel else "local")
    if experts not in ("parallel", "local"):
        raise InputError(f"{where}: experts are '{experts}'; expected parallel or local")
    more: dict[str, Any] = {column: _number(where, column, row[column]) for column in _NUMBERS if row.get(column)}
    more |= sizes | {column: int(value) for column, value in counts.items()}
    seconds = _number(where, time, row[time], what="a time above 0") * SECONDS[unit_in(time) or "s"]
    if not seconds > 0:
        raise InputError(f"{where}: {time} is '{row[time]}'; expected a time above 0")
    try:
        shape = replace(
            asked,
            model=model,
            device=row.get("device") or asked.device,
            expert_parallel=experts == "parallel",
            running=_number(where, "running", row["running"]),
            context_tokens=_number(where, "context_tokens", row["context_tokens"]),
            overlap=bool(_number(where, "overlap", row.get("overlap") or "0")),
            **more,
        )
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    given = {name: getattr(shape, name) for name in DecodeStep.__slots__}
    return MeasuredStep(**given, source="own", run="own", place=where, seconds=seconds, doubt=_DOUBT)


def _number(where: str, column: str, cell: str, what: str = "a number of zero or more") -> float:
    return number(f"{where}: {column}", cell, what)
