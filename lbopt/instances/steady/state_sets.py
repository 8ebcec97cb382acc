"""The frozen lists of states that speed is measured on: generator, seed and spacing of each class, as data.

They were written down before anything was tuned; tuning used other seeds. What a class is called says what it holds:
``rich-burstgpt-g16`` is G = 16 workers with a rich pool drawn from BurstGPT.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from lbopt.exceptions import InputError
from lbopt.instances.steady.fleet import SteadyFleet
from lbopt.model import StepProblem, Trace


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

    def problems(self, trace: Trace, count: int | None = None) -> Iterator[StepProblem]:
        """Yield the first `count` problems of the class (all by default), drawn from the records of `trace`."""
        fleet = SteadyFleet(
            trace, workers=self.workers, slots=self.slots, pool=self.pool, shape=self.shape, seed=self.seed
        )
        yield from fleet.problems(
            self.count if count is None else count, warm_up=self.warm_up, spacing=self.spacing, horizon=self.horizon
        )


def read_state_sets() -> dict[str, StateSet]:
    """Return the packaged classes by name."""
    table = tomllib.loads(files("lbopt.instances.steady").joinpath("state_sets.toml").read_text(encoding="utf-8"))
    common = table["common"]
    return {one["name"]: StateSet(**{**common, **one}) for one in table["class"]}


def state_set(name: str) -> StateSet:
    """Return one class."""
    known = read_state_sets()
    if name not in known:
        raise InputError(f"there is no class of states {name!r}; there are {', '.join(known)}")
    return known[name]
