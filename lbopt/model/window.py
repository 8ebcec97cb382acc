"""Loads over a window: what running requests will hold at h = 0..H if no further request is admitted.

A running request of present size a gains `growth` tokens a step; one that is known to end after r more steps counts for
h < r and is gone from h = r on (BF-IO, section 4: predicted loads after the end are 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray, integer_array


def growth_steps(horizon: int, growth: int) -> IntArray:
    """Return the tokens that a running request has gained at h = 0..H, int64 (H+1,)."""
    for name, value in (("horizon", horizon), ("growth", growth)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"{name} is {value!r}; expected a whole number of zero or more")
    return np.arange(int(horizon) + 1, dtype=np.int64) * int(growth)


def projected_base(loads: Any, active: Any, departures: Any, growths: IntArray) -> IntArray:
    """Return the base loads, int64 (G, H+1) in tokens.

    Parameters
    ----------
    loads, active, departures
        As in `StepProblem.survives`.
    growths
        int64, (H+1,): tokens that a running request has gained by each step of the window.
    """
    present = integer_array("loads", loads, ndim=(1,))
    running = integer_array("active", active if active is not None else np.zeros_like(present), ndim=(1,))
    if running.shape != present.shape:
        raise InputError(f"active has {running.size} entries but loads has {present.size} workers")
    base = present[:, None] + running[:, None] * growths[None, :]
    if departures is None or len(departures) == 0:
        return base
    rows = integer_array("departures", departures, ndim=(2,))
    if rows.shape[1] != 3:
        raise InputError(f"departures has shape {rows.shape}; expected rows of (worker, remaining steps, size)")
    for row, (worker, remaining, size) in enumerate(rows.tolist()):
        if worker >= present.size:
            raise InputError(f"departures[{row}] names worker {worker}; expected 0..{present.size - 1}")
        if remaining < 1:
            raise InputError(f"departures[{row}] has 0 remaining steps; a running request has at least 1")
        base[worker, remaining:] -= size + growths[remaining:]
    if (base < 0).any():
        worker = int(np.argwhere(base < 0)[0][0])
        raise InputError(f"departures remove more from worker {worker} than its load and active count hold")
    return base
