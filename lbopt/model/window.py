"""Loads over a window: what running requests will hold at h = 0..H if no further request is admitted.

A running request of present size a gains `growth` tokens a step; one that is known to end after r more steps counts for
h < r and is gone from h = r on (BF-IO, section 4: predicted loads after the end are 0).

All arithmetic is exact: in int64 where a bound on every intermediate value, computed in Python integers, says that it
fits, and in Python integers in object arrays otherwise.
"""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.model.integers import LARGEST_TOTAL, IntArray, integer_array

#: Entries of a window, requests or workers times steps: 4 GiB of int64.
MOST_ENTRIES = 2**29

#: int64 where all numbers fit, Python integers otherwise.
Integers = NDArray[Any]


class Running(TypedDict, total=False):
    """What runs on the workers over a window, and how fast requests grow; all parts are optional.

    Parameters
    ----------
    active
        int, (G,): requests running on each worker, each of which grows by `growth` tokens a step. None means that the
        present loads do not grow.
    departures
        int, (D, 3), one row per running request that ends inside the window: worker, remaining steps r >= 1, present
        size in tokens. It counts as running for h < r and is gone from h = r on.
    growth
        Tokens that each running or new request gains per step, 1 where nothing is said; 0 freezes all loads.
    """

    active: Any
    departures: Any
    growth: int


def ahead(
    loads: Any, sizes: Any, outputs: Any, horizon: int, *, active: Any = None, departures: Any = None, growth: int = 1
) -> tuple[IntArray, IntArray]:
    """Return the loads over a window, of workers int64 (G, H+1) and of new requests int64 (N, H+1), in tokens.

    Parameters
    ----------
    loads, sizes, horizon, active, departures, growth
        As in `StepProblem.survives`.
    outputs
        int, (N,), at least 1: steps that each new request runs; None where all outlive the window.
    """
    growths, prompt = growth_steps(horizon, growth), integer_array("sizes", sizes, ndim=(1,))
    work = grown(prompt, growths)
    if outputs is not None:
        steps = integer_array("outputs", outputs, ndim=(1,))
        if steps.shape != prompt.shape:
            raise InputError(f"outputs has {steps.size} entries but sizes has {prompt.size}")
        if (steps < 1).any():
            raise InputError(f"outputs[{int(np.argmax(steps < 1))}] is 0; a request runs at least one step")
        work = work * (np.arange(growths.size)[None, :] < steps[:, None])
    return held_in_tokens("worker", projected_base(loads, active, departures, growths)), held_in_tokens("request", work)


def growth_steps(horizon: int, growth: int) -> Integers:
    """Return the tokens that a running request has gained at h = 0..H: (H+1,), int64 or Python integers."""
    steps, gain = whole("horizon", horizon), whole("growth", growth)
    _refuse_size("horizon", steps, 1)
    return np.arange(steps + 1, dtype=np.int64).astype(_kind(steps * gain, gain)) * gain


def grown(sizes: IntArray, growths: Integers) -> Integers:
    """Return the load of each request over the window, (N, H+1) in tokens.

    Parameters
    ----------
    sizes
        int64, (N,): prompt tokens.
    growths
        As `growth_steps` returns it.
    """
    _refuse_size("horizon", growths.size - 1, sizes.size)
    kind = _kind(max(sizes.tolist(), default=0) + int(growths[-1]))
    return sizes.astype(kind)[:, None] + growths.astype(kind)[None, :]


def projected_base(loads: Any, active: Any, departures: Any, growths: Integers) -> Integers:
    """Return the base loads, (G, H+1) in tokens.

    Parameters
    ----------
    loads, active, departures
        As in `StepProblem.survives`.
    growths
        As `growth_steps` returns it.
    """
    present = integer_array("loads", loads, ndim=(1,))
    running = integer_array("active", active if active is not None else np.zeros_like(present), ndim=(1,))
    if running.shape != present.shape:
        raise InputError(f"active has {running.size} entries but loads has {present.size} workers")
    rows = _departures(departures, present.size)
    _refuse_size("horizon", growths.size - 1, present.size)
    longest = int(growths[-1])
    most = max(present.tolist(), default=0) + max(running.tolist(), default=0) * longest
    kind = _kind(most, longest, sum(size + longest for _, _, size in rows))
    growths = growths.astype(kind)
    base: Integers = present.astype(kind)[:, None] + running.astype(kind)[:, None] * growths[None, :]
    for worker, remaining, size in rows:
        base[worker, remaining:] -= size + growths[remaining:]
    if (base < 0).any():
        worker = int(np.argwhere(base < 0)[0][0])
        raise InputError(f"departures remove more from worker {worker} than its load and active count hold")
    return base


def held_in_tokens(what: str, loads: Integers) -> IntArray:
    """Return loads over the window as int64; `what` names a row in the message.

    Raises
    ------
    InputError
        Where a load is beyond 2**62.
    """
    if loads.dtype == object:
        too_large = np.argwhere(loads > LARGEST_TOTAL)
        if too_large.size:
            row, step = too_large[0].tolist()
            size = int(loads[row, step])
            number = f"{size} tokens" if size < 10**40 else f"a number of {size.bit_length()} bits"
            raise InputError(
                f"{what} {row} would hold {number} at step {step} of the window; expected at most 2**62 = "
                f"{LARGEST_TOTAL}: use a smaller growth or horizon, or divide all numbers of tokens by a common factor"
            )
    return loads.astype(np.int64)


def _departures(departures: Any, num_workers: int) -> list[list[int]]:
    """Return the rows (worker, remaining steps, size), checked."""
    if departures is None:
        return []
    rows = integer_array("departures", departures, ndim=(1, 2))
    if rows.size == 0:
        return []
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise InputError(f"departures has shape {rows.shape}; expected rows of (worker, remaining steps, size)")
    checked: list[list[int]] = rows.tolist()
    for row, (worker, remaining, _) in enumerate(checked):
        if worker >= num_workers:
            raise InputError(f"departures[{row}] names worker {worker}; expected 0..{num_workers - 1}")
        if remaining < 1:
            raise InputError(f"departures[{row}] has 0 remaining steps; a running request has at least 1")
    return checked


def _kind(*largest: int) -> type:
    """Return the type in which numbers up to these, and differences of two, are exact."""
    return np.int64 if max(largest) <= LARGEST_TOTAL else object


def _refuse_size(name: str, horizon: int, rows: int) -> None:
    """Refuse a window that no memory holds, before it is allocated."""
    if (horizon + 1) * max(1, rows) > MOST_ENTRIES:
        raise InputError(
            f"{name} is {horizon}; with {rows} rows of loads it may be at most {MOST_ENTRIES // max(1, rows) - 1}"
        )
