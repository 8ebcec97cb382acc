"""What a step-time law is: anything that gives the barrier form of a fleet and can say what it is."""

from __future__ import annotations

from typing import Any, Protocol

from lbopt.hardware.step_time.barrier_form import BarrierForm


class StepTime(Protocol):
    """Seconds of a decode step, from what the workers hold and run."""

    @property
    def name(self) -> str:
        """As users name it, with its options."""

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form for G workers of B slots."""

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data, for `run.json`."""
