"""Do two output folders say the same? The first number that differs, times of this machine left aside."""

from __future__ import annotations

import csv
import json
from pathlib import Path

#: Columns that measure this machine at this moment.
TIMINGS = ("microseconds_per_decision", "simulation_seconds")
TABLES = ("gap.csv", "long_runs.csv", "differences.csv")


def first_difference(old: Path, new: Path) -> str | None:
    """Return a sentence that names file, row and column of the first number that differs, or None."""
    for name in TABLES:
        found = _first_in_table(name, _rows(old / name), _rows(new / name))
        if found:
            return found
    return _first_in_steps(_lines(old / "steps.jsonl"), _lines(new / "steps.jsonl"))


def _first_in_table(name: str, old: list[dict[str, str]], new: list[dict[str, str]]) -> str | None:
    if len(old) != len(new):
        return f"{name}: {len(old)} rows then, {len(new)} now"
    for number, (before, now) in enumerate(zip(old, new, strict=True), start=1):
        for column in {**before, **now}:
            if column not in TIMINGS and before.get(column) != now.get(column):
                who = now.get("policy", "")
                return f"{name} row {number} ({who}), {column}: {before.get(column)} then, {now.get(column)} now"
    return None


def _first_in_steps(old: list[str], new: list[str]) -> str | None:
    if len(old) != len(new):
        return f"steps.jsonl: {len(old)} states then, {len(new)} now"
    for number, (before, now) in enumerate(zip(old, new, strict=True), start=1):
        a, b = json.loads(before), json.loads(now)
        for place in ("problem", "decisions"):
            if a[place] != b[place]:
                return f"steps.jsonl line {number}, {place}: {_brief(a[place])} then, {_brief(b[place])} now"
        for field in ("objective", "bound", "status", "proof"):
            if a["result"][field] != b["result"][field]:
                return f"steps.jsonl line {number}, {field}: {a['result'][field]} then, {b['result'][field]} now"
    return None


def _brief(value: object) -> str:
    text = value.get("digest", str(value)) if isinstance(value, dict) else str(value)
    return text if len(text) < 80 else text[:77] + "..."


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
