"""A printed statement beside ours, and what we say of it.

A range spans models and workloads there; ours is one model. What the verdicts mean is in `lbopt.studies.verdict`.
A single printed number stands for a range of 30 % around it: it is of one run on another machine. What the workload was
calibrated to is marked: that it agrees says nothing. The best balancer is the best of four in each world, at each rate
and for each quantity, as in the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lbopt.studies.locality.plan import PlannedRun

#: What one world answered, and the rates of the study.
Answer = dict[str, Any]
Figure = Callable[[Answer, tuple[float, ...]], float | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """One printed statement.

    Parameters
    ----------
    item
        The item of the study whose runs it needs.
    workload
        "task" or "language".
    quantity, unit
        What it is about.
    low, high
        The printed range; infinite where it is open.
    printed
        As the source has it.
    figure
        From the answer of one world to our value; None where the world cannot tell.
    calibrated
        Whether the workload was made to meet it.
    """

    item: str
    workload: str
    quantity: str
    unit: str
    low: float
    high: float
    printed: str
    figure: Figure
    calibrated: bool = False


def change(answer: Answer, run: PlannedRun, of: str, base: str = "round-robin") -> float | None:
    """Return by how many percent a run's `of` exceeds that of the rule `base` in the same place."""
    runs = answer["runs"]
    other = PlannedRun(run.fleet, run.workers, run.rate, base)
    if run.key not in runs or other.key not in runs:
        return None
    return 100 * (float(runs[run.key][of]) / float(runs[other.key][of]) - 1)
