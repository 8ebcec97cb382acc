"""Measured decode steps of public documents, as objects that a law can be asked about.

The rows are the published table `measured-steps`; `sources.toml` names the documents, and `held_out.toml` the sources
that no calibration may see. Two were drawn by seed before the first law was fitted; a later draw added a third, from
documents found afterwards, before anything of the law was changed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from lbopt.hardware.published import MeasuredStep, published_table

TABLE = "measured-steps"

#: Columns of the table that hold text; all others are numbers.
_TEXT = ("source", "run", "device", "model", "experts", "place")


def measured_steps() -> tuple[MeasuredStep, ...]:
    """Return the measured steps of the shipped table, in its order."""
    years = {source: _year(document["date"]) for source, document in measured_sources().items()}
    return tuple(_step(row, years[str(row["source"])]) for row in published_table(TABLE).rows)


def measured_sources() -> dict[str, Mapping[str, str]]:
    """Return the documents by their keys: title, address, date, converted, uncertain."""
    return _toml("sources")


def held_out_sources() -> tuple[str, ...]:
    """Return the sources that no calibration may see, in the order in which they were drawn."""
    draw = _toml("held_out")
    return (*draw["held_out"], *draw["later"]["held_out"])


def the_draw() -> dict[str, Any]:
    """Return how the sources that are held out were drawn: seed, drawable, order, held_out; and of `later` the same."""
    return _toml("held_out")


def _toml(name: str) -> dict[str, Any]:
    text = Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _year(day: str) -> float:
    """Return 2025.5 for the middle of 2025."""
    published = date.fromisoformat(day)
    return published.year + (published.timetuple().tm_yday - 0.5) / 365.25


def _step(row: Mapping[str, float | str], year: float) -> MeasuredStep:
    given: dict[str, Any] = {name: float(value) for name, value in row.items() if name not in _TEXT}
    seconds = given.pop("step_time_ms") / 1e3
    del given["mean_load_tokens"]
    given |= {name: int(given[name]) for name in ("devices", "tp")}
    overlap = bool(given.pop("overlap"))
    given |= {name: str(row[name]) for name in _TEXT if name != "experts"}
    return MeasuredStep(
        **given,
        expert_parallel=row["experts"] == "parallel",
        overlap=overlap,
        year=year,
        seconds=seconds,
    )
