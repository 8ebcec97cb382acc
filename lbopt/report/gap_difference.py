"""Do two output folders say the same? The first number that differs, times of this machine left aside."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError

#: Columns and fields that measure this machine at this moment.
TIMINGS = ("microseconds_per_decision", "simulation_seconds", "seconds")
TABLES = ("gap.csv", "long_runs.csv", "differences.csv", "batches.csv")
STATES = ("steps.jsonl", "batches.jsonl")


def first_difference(old: Path, new: Path) -> str | None:
    """Return a sentence that names file, row and column of the first number that differs, or None."""
    for name in TABLES:
        found = _first_in_table(name, _rows(old / name), _rows(new / name))
        if found:
            return found
    for name in STATES:
        found = _first_in_states(name, _lines(old / name), _lines(new / name))
        if found:
            return found
    for name in sorted({path.name for folder in (old, new) for path in folder.glob("*.png")}):
        if _bytes(old / name) != _bytes(new / name):
            return f"{name}: another picture of the same numbers"
    return None


def _first_in_table(name: str, old: list[dict[str, str]], new: list[dict[str, str]]) -> str | None:
    if len(old) != len(new):
        return f"{name}: {len(old)} rows then, {len(new)} now"
    for number, (before, now) in enumerate(zip(old, new, strict=True), start=1):
        for column in {**before, **now}:
            if column not in TIMINGS and before.get(column) != now.get(column):
                who = now.get("policy") or now.get("rule", "")
                return f"{name} row {number} ({who}), {column}: {before.get(column)} then, {now.get(column)} now"
    return None


def _first_in_states(name: str, old: list[str], new: list[str]) -> str | None:
    if len(old) != len(new):
        return f"{name}: {len(old)} states then, {len(new)} now"
    for number, (before, now) in enumerate(zip(old, new, strict=True), start=1):
        try:
            found = _first_inside(json.loads(before), json.loads(now), "")
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name} line {number} is not valid JSON: {error}") from None
        if found:
            return f"{name} line {number}{found}"
    return None


def _first_inside(old: Any, new: Any, place: str) -> str | None:
    """Go through both in step, and return place and values of the first leaf that differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(f", {name}", old.get(name), new.get(name)) for name in {**old, **new} if name not in TIMINGS]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(f"[{index}]", a, b) for index, (a, b) in enumerate(zip(old, new, strict=True))]
    else:
        return None if old == new else f"{place}: {_brief(old)} then, {_brief(new)} now"
    for inner, a, b in pairs:
        found = _first_inside(a, b, place + inner)
        if found:
            return found
    return None


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) < 80 else text[:77] + "..."


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        return list(csv.DictReader(stream))


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
