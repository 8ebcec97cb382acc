"""Measured decode steps of public documents, as objects that a law can be asked about.

The rows are the published table `measured-steps`; `measured/sources.toml` names the documents, and
`measured/held_out.toml` the sources that no calibration may see. These were drawn by seed before the first law was
fitted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.published.table import published_table

TABLE = "measured-steps"

#: Columns of the table that hold text; all others are numbers.
_TEXT = ("source", "run", "device", "model", "experts", "place")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """One measured decode step and the deployment that it was measured on; the columns of the table `measured-steps`.

    Parameters
    ----------
    source, run, place
        Key of the document, rows of one engine and machine, and where in the document the figure stands.
    device, model
        Names of cards.
    devices, tp
        Devices that decode, and devices of one worker.
    expert_parallel
        Whether experts are spread over all workers.
    expert_bytes, common_bytes, kv_bytes
        Bytes of a parameter of an expert, of any other parameter, and of a cached value.
    running, context_tokens
        Running requests of a worker, and mean cached tokens of a request.
    prompt_share
        Prompt tokens that the same devices compute for every output token.
    accepted, drafted
        Output tokens of a request in a step, and tokens of it that a step computes.
    overlap
        Whether messages between experts overlap with computation.
    doubt
        Standard deviation of the logarithm of the time that rounding and conversion leave open.
    watts
        W of one device, 0 where not published.
    year
        When it was published, such as 2025.5.
    seconds
        s, the step.
    """

    source: str
    run: str
    place: str
    device: str
    model: str
    devices: int
    tp: int
    expert_parallel: bool
    expert_bytes: float
    common_bytes: float
    kv_bytes: float
    running: float
    context_tokens: float
    seconds: float
    year: float
    prompt_share: float = 0.0
    accepted: float = 1.0
    drafted: float = 1.0
    overlap: bool = False
    doubt: float = 0.03
    watts: float = 0.0

    def __post_init__(self) -> None:
        if self.devices < 1 or self.tp < 1 or self.devices % self.tp:
            raise InputError(
                f"{self.place}: {self.devices} devices in workers of {self.tp}; expected a whole number of workers"
            )
        for name in ("running", "seconds", "accepted", "drafted", "expert_bytes", "common_bytes", "kv_bytes"):
            if not getattr(self, name) > 0:
                raise InputError(f"{self.place}: {name} is {getattr(self, name)}; expected a number above 0")

    @property
    def workers(self) -> int:
        """Workers that meet in every step."""
        return self.devices // self.tp

    @property
    def load(self) -> float:
        """Cached tokens of a worker."""
        return self.running * self.context_tokens


def measured_steps() -> tuple[MeasuredStep, ...]:
    """Return the measured steps of the shipped table, in its order."""
    years = {source: _year(document["date"]) for source, document in measured_sources().items()}
    return tuple(_step(row, years[str(row["source"])]) for row in published_table(TABLE).rows)


def measured_sources() -> dict[str, Mapping[str, str]]:
    """Return the documents by their keys: title, address, date, converted, uncertain."""
    return _toml("sources")


def held_out_sources() -> tuple[str, ...]:
    """Return the sources that no calibration may see."""
    return tuple(_toml("held_out")["held_out"])


def the_draw() -> dict[str, Any]:
    """Return how the sources that are held out were drawn: seed, drawable, order, held_out."""
    return _toml("held_out")


def _toml(name: str) -> dict[str, Any]:
    text = files(__package__).joinpath("measured", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _year(day: str) -> float:
    """Return 2025.5 for the middle of 2025."""
    published = date.fromisoformat(day)
    return published.year + (published.timetuple().tm_yday - 0.5) / 365.25


def _step(row: Mapping[str, float | str], year: float) -> MeasuredStep:
    numbers = {name: float(value) for name, value in row.items() if name not in _TEXT}
    seconds = numbers.pop("step_time_ms") / 1e3
    del numbers["mean_load_tokens"]
    for name in ("devices", "tp"):
        numbers[name] = int(numbers[name])
    overlap = bool(numbers.pop("overlap"))
    text = {name: str(row[name]) for name in _TEXT if name != "experts"}
    return MeasuredStep(
        **text,
        **numbers,
        expert_parallel=row["experts"] == "parallel",
        overlap=overlap,
        year=year,
        seconds=seconds,
    )
