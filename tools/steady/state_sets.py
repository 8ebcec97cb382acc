"""The frozen lists of states that speed is measured on: generator, seed and spacing of each class, as data.

They were written down before anything was tuned; tuning used other seeds. What a class is called says what it holds:
``rich-burstgpt-g16`` is G = 16 workers with a rich pool drawn from BurstGPT, ``all-code-g64-s90`` a step of 64 workers
that admits all that wait, as many requests as 90 % of the free slots.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.instances.sources import open_trace
from lbopt.model import StepProblem, Trace
from tools.steady.fleet import SteadyFleet
from tools.steady.lengths import drawn_records

#: The file of each trace that classes are drawn from.
TRACE_FILES = {
    "burstgpt": "burstgpt_8000.json",
    "azure": "azure_llm_2023_conv.csv",
    "code": "azure_llm_2023_code.csv",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSet:
    """One class of steady states: everything that is needed to draw it again."""

    name: str
    trace: str
    shape: str
    workers: int
    slots: int
    pool: int
    horizon: int
    seed: int
    warm_up: int
    spacing: int
    count: int
    waiting: float | None = None

    def records(self, folder: Path | str | None) -> Trace:
        """Return the records that the class is drawn from: a trace in `folder`, or drawn lengths, which need none."""
        lengths = _table()["lengths"]
        if self.trace in lengths:
            return drawn_records(self.trace, lengths[self.trace])
        if folder is None:
            raise InputError(f"the states of '{self.name}' are drawn from a trace; give its folder with --data")
        file = Path(folder) / TRACE_FILES[self.trace]
        if not file.is_file():
            raise InputError(f"the states of '{self.name}' are drawn from {file.name}, which is not in '{folder}'")
        return open_trace(str(file))

    def problems(self, trace: Trace, count: int | None = None) -> Iterator[StepProblem]:
        """Yield the first `count` problems of the class (all by default), drawn from the records of `trace`."""
        fleet = SteadyFleet(
            trace,
            workers=self.workers,
            slots=self.slots,
            pool=self.pool,
            shape=self.shape,
            seed=self.seed,
            waiting=self.waiting,
        )
        yield from fleet.problems(
            self.count if count is None else count, warm_up=self.warm_up, spacing=self.spacing, horizon=self.horizon
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberSet:
    """A class of balanced number partitioning: numbers of 1 … high, workers with just enough slots for all."""

    name: str
    numbers: int
    workers: int
    high: int
    seed: int
    count: int

    def problems(self) -> Iterator[StepProblem]:
        """Yield the problems of the class."""
        rng = np.random.default_rng(self.seed)
        slots = [-(-self.numbers // self.workers)] * self.workers
        for _ in range(self.count):
            yield StepProblem.now([0] * self.workers, slots, rng.integers(1, self.high + 1, self.numbers))


def read_state_sets() -> dict[str, StateSet]:
    """Return the packaged classes by name."""
    common = _table()["common"]
    return {one["name"]: StateSet(**{**common, **one}) for one in _table()["class"]}


def read_number_sets() -> dict[str, NumberSet]:
    """Return the packaged classes of number partitioning by name."""
    return {one["name"]: NumberSet(**one) for one in _table()["numbers"]}


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return tomllib.loads(files("tools.steady").joinpath("state_sets.toml").read_text(encoding="utf-8"))


def state_set(name: str) -> StateSet:
    """Return one class."""
    known = read_state_sets()
    if name not in known:
        raise InputError(f"there is no class of states {name!r}; there are {', '.join(known)}")
    return known[name]
