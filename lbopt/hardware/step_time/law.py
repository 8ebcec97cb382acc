"""What a step-time law is: anything that gives the barrier form of a fleet and can say what it is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.step_time.barrier_form import BarrierForm
from lbopt.hardware.step_time.roofline_breakdown import Breakdown


class StepTime(Protocol):
    """Seconds of a decode step, from what the workers hold and run."""

    @property
    def name(self) -> str:
        """As users name it, with its options."""

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form for G workers of B slots."""

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data, for `run.json`."""


@runtime_checkable
class StepTimeByUse(StepTime, Protocol):
    """A step-time law that can use the number of experts that each worker's requests really use."""

    @property
    def experts(self) -> int:
        """Experts of a layer."""

    def form_of_use(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form with a term for experts in use."""


@runtime_checkable
class DraftingStepTime(StepTime, Protocol):
    """A step-time law that says how many tokens of a request a step computes."""

    @property
    def query_tokens(self) -> int:
        """1, or one more than are drafted."""


@runtime_checkable
class ExplainedStepTime(StepTime, Protocol):
    """A step-time law that can say where the seconds of a step go."""

    def breakdown(self, loads: NDArray[Any], running: NDArray[np.int64]) -> Breakdown:
        """Return the parts of steps; `loads` and `running` are (..., G)."""
