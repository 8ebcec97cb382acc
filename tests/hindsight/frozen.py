"""The frozen runs on which the clairvoyant optimum is measured: 200 of each size, drawn by seed before any tuning.

Four workers of 4, 8 or 16 slots admit first come, first served, all requests being there from the beginning. Lengths
are uniform, as in BurstGPT (the embedded family), or heavy-tailed: log-normal prompts and Pareto outputs. Numbers go
round the nine classes, so that the first nine runs of a size hold one of each class. Whoever tunes draws other seeds
with `tuning=True`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.instances.families import generate
from lbopt.model import Trace

WORKERS = 4
SLOTS = (4, 8, 16)
LENGTHS = ("uniform", "burstgpt", "heavy")
SIZES = (48, 64, 100, 200)
COUNT = 200

_FROZEN_SEED = 20_261_126
_TUNING_SEED = 7


@dataclass(frozen=True)
class FrozenRun:
    """One run: its class, its number within its size, and its timetable."""

    slots: int
    lengths: str
    num_requests: int
    number: int
    timetable: Timetable


def lengths_of(kind: str, count: int, rng: np.random.Generator) -> Trace:
    """Draw prompts and outputs of one kind."""
    if kind == "uniform":
        return Trace(prompt=rng.integers(1, 1001, count), output=rng.integers(1, 301, count))
    if kind == "burstgpt":
        return generate("burstgpt-like", count, int(rng.integers(2**31)))
    prompt = np.minimum(np.floor(np.exp(rng.normal(5.5, 1.2, count))).astype(np.int64), 32_768)
    output = np.minimum(np.ceil(30 * (1 + rng.pareto(1.5, count))).astype(np.int64), 4_096)
    return Trace(prompt=prompt, output=output)


def frozen_runs(num_requests: int, count: int = COUNT, *, tuning: bool = False) -> Iterator[FrozenRun]:
    """Yield the first `count` runs of a size; class and seed depend on the number alone."""
    for number in range(count):
        kind, slots = LENGTHS[number % 3], SLOTS[number // 3 % 3]
        seed = _TUNING_SEED if tuning else _FROZEN_SEED
        rng = np.random.default_rng([seed, num_requests, number])
        trace = lengths_of(kind, num_requests, rng)
        yield FrozenRun(slots, kind, num_requests, number, first_come(trace, WORKERS, slots))
