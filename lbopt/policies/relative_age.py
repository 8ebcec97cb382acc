"""An age bound that is a multiple of what first come, first served makes 99 of 100 requests wait.

A bound in steps is no promise of service: the same number is nothing on one trace and everything on another.
``age_bound=3x`` is three times that wait, measured in a run of `fcfs` with the same requests, fleet and seed;
``age_bound=3x46`` is three times 46 steps. One step is the least bound: below it nothing is left to choose.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.policies.observation import Observation
from lbopt.policies.policy import Admission, Policy, foresight_of
from lbopt.predictors import Foresight

OPTION = "age_bound"
_MULTIPLE = re.compile(rf"(?:^|(?<=,)){OPTION}=(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)?(?=,|$)")


@dataclass(frozen=True, slots=True)
class RelativeAge:
    """A rule whose age bound is told at the beginning of a run.

    Parameters
    ----------
    name
        What tables call it.
    multiple
        Of the 99th percentile of the steps that first come, first served makes requests wait.
    with_bound
        Makes the rule with a bound in steps.
    """

    name: str
    multiple: float
    with_bound: Callable[[int], Policy]

    @property
    def admission(self) -> Admission:
        """As of the rule."""
        return self.with_bound(1).admission

    @property
    def foresight(self) -> Foresight | None:
        """As of the rule."""
        return foresight_of(self.with_bound(1))

    def settle(self, fifo_wait: float) -> Policy:
        """Return the rule, given the 99th percentile of first come, first served, steps."""
        return self.with_bound(steps_of(self.multiple, fifo_wait))

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Refuse: a state by itself says nothing of the waits of a run.

        Raises
        ------
        InputError
            Always.
        """
        raise self.not_in_a_run()

    def not_in_a_run(self) -> InputError:
        """Return the error of one who asks for a single decision."""
        return InputError(
            f"policy '{self.name}': {OPTION}={self.multiple:g}x is measured in a whole run, which one decision is not; "
            f"name steps, {OPTION}=50, or the wait of first come, first served, {OPTION}={self.multiple:g}x46"
        )


def steps_of(multiple: float, fifo_wait: float) -> int:
    """Return the bound in steps."""
    return max(1, math.ceil(multiple * fifo_wait))


def with_told_waits(text: str) -> tuple[str, float | None]:
    """Return the options with ``age_bound=3x46`` as steps, and the multiple of ``age_bound=3x``, if that is there."""
    found = _MULTIPLE.search(text)
    if found is None:
        return text, None
    if found[2] is None:
        return text, float(found[1])
    return _MULTIPLE.sub(f"{OPTION}={steps_of(float(found[1]), float(found[2]))}", text), None


def with_steps(text: str, steps: int) -> str:
    """Return the options with the bound in steps in the place of its multiple."""
    return _MULTIPLE.sub(f"{OPTION}={steps}", text)
