"""Do two output folders of a study say the same? The first number that differs, times of the machine left aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lbopt.files import csv_table, parse_json, read_bytes, read_text
from lbopt.report.folder import without_nan
from lbopt.report.study_report import report_of
from lbopt.studies.study import Study

#: Entries of `run.json` that say how a run went and not what it found.
_OF_THE_RUN = ("interrupted", "notes", "seconds", "finished")
#: Bytes of a file of states.
_LARGEST = 2**30

#: Files that are made of the same numbers as the others, or of times alone.
_NOT_COMPARED = ("run.json", "summary.json")


def account_difference(study: Study, before: dict[str, Any], outcome: Any) -> str | None:
    """Return a sentence on the first entry of `run.json` in which a repeated study differs, or None.

    The requests come first: where a trace file is not what it was, no number can be the same.
    """
    if "trace" in study.account:
        for name, now in _plain(outcome.trace).items():
            then = before["trace"].get(name)
            if then != now:
                requests = getattr(outcome.config, "requests", None) or outcome.config.scenario.requests
                return f"the requests of '{requests.trace}', {name}: {then} then, {now} now"
    for name, now in _plain(study.facts(outcome)).items():
        if name not in _OF_THE_RUN and name in before:
            found = _first_inside(before[name], now, f" {name}", study.timings)
            if found:
                return f"run.json{found}"
    return None


def folder_difference(study: Study, old: Path, new: Path) -> str | None:
    """Return a sentence that names file, row and column of the first number that differs, or None.

    Pictures are compared where the old folder has any and they show no times.
    """
    pictures = any(old.glob("*.png"))
    names = {path.name for folder in (old, new) for path in folder.iterdir() if path.is_file()}
    first = [f"{name}.csv" for name in report_of(study.name).csv]
    tables = [name for name in first if name in names] + sorted(
        name for name in names if name.endswith(".csv") and name not in first
    )
    for name in tables:
        found = _first_in_table(name, _rows(old / name), _rows(new / name), study.timings)
        if found:
            return found
    for name in sorted(name for name in names if name.endswith((".jsonl", ".json")) and name not in _NOT_COMPARED):
        found = _first_in_records(name, _lines(old / name), _lines(new / name), study.timings)
        if found:
            return found
    for name in sorted(name for name in names if name.endswith(".png")):
        if pictures and _bytes(old / name) != _bytes(new / name):
            return f"{name}: another picture of the same numbers"
    return None


def _first_in_table(
    name: str, old: list[dict[str, str]], new: list[dict[str, str]], timings: tuple[str, ...]
) -> str | None:
    if len(old) != len(new):
        return f"{name}: {len(old)} rows then, {len(new)} now"
    for number, (before, now) in enumerate(zip(old, new, strict=True), start=1):
        for column in {**before, **now}:
            if column not in timings and before.get(column) != now.get(column):
                which = now.get("policy") or now.get("rule") or next(iter(now.values()), "")
                return f"{name} row {number} ({which}), {column}: {before.get(column)} then, {now.get(column)} now"
    return None


def _first_in_records(name: str, old: list[str], new: list[str], timings: tuple[str, ...]) -> str | None:
    if name.endswith(".json"):
        old, new = ["\n".join(old)], ["\n".join(new)]
    if len(old) != len(new):
        return f"{name}: {len(old)} states then, {len(new)} now"
    for number, (before, now) in enumerate(zip(old, new, strict=True), start=1):
        then, here = (parse_json(line or "null", f"{name}, line {number}") for line in (before, now))
        found = _first_inside(then, here, "", timings)
        if found:
            return f"{name} line {number}{found}"
    return None


def _first_inside(old: Any, new: Any, place: str, timings: tuple[str, ...]) -> str | None:
    """Go through both in step, and return place and values of the first leaf that differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(f", {name}", old.get(name), new.get(name)) for name in {**old, **new} if name not in timings]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(f"[{index}]", a, b) for index, (a, b) in enumerate(zip(old, new, strict=True))]
    else:
        return None if old == new else f"{place}: {_brief(old)} then, {_brief(new)} now"
    for inner, a, b in pairs:
        found = _first_inside(a, b, place + inner, timings)
        if found:
            return found
    return None


def _plain(data: Any) -> Any:
    """Return data as they are after a way through JSON, in which NaN is null."""
    return json.loads(json.dumps(without_nan(data)))


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) < 80 else text[:77] + "..."


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    header, rows = csv_table(read_text(path, path.name), path.name, or_none=True)
    return [dict(zip(header, cells, strict=True)) for _, cells in rows]


def _lines(path: Path) -> list[str]:
    text = read_text(path, path.name, largest=_LARGEST) if path.is_file() else ""
    return text.removesuffix("\n").split("\n") if text else []


def _bytes(path: Path) -> bytes:
    return read_bytes(path, path.name) if path.is_file() else b""
