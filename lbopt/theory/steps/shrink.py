"""A smaller step that refutes the same statement: what cannot be taken away is what refutes it.

From a step and a placement that violates the statement, one thing is taken away at a time (a worker with what it holds,
a slot with its request, a request that waits, some load, some size), and the first smaller step in which there still is
a violation takes its place, until none does (delta debugging, Zeller and Hildebrandt 2002, over the moves of a step).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.theory.steps.small_step import SmallStep

Placement = NDArray[np.int64]
Find = Callable[[SmallStep], Placement | None]


def shrink(step: SmallStep, find: Find) -> tuple[SmallStep, Placement]:
    """Return a step from which nothing more can be taken, and the placement in it that `find` gives.

    `find` gives a placement (G, m) that violates the statement although its hypotheses hold, or None; it must give one
    for `step`. Moves that break the hypotheses are refused by `find` itself.
    """
    placement = find(step)
    if placement is None:
        raise ValueError("there is nothing to shrink: the step does not violate the statement")
    while True:
        for smaller in _smaller(step, placement):
            found = find(smaller) if any(smaller.free) else None  # nothing is decided where no slot is free
            if found is not None:
                step, placement = smaller, found
                break
        else:
            return step, placement


def counterexample(step: SmallStep, placement: Placement, says: str) -> dict[str, Any]:
    """Return the counterexample of a finding: the step for ``lbopt solve``, the workers of its requests, a sentence."""
    return {"problem": step.problem().to_dict(), "assignment": step.assignment(placement), "says": says}


def _smaller(step: SmallStep, placement: Placement) -> Iterator[SmallStep]:
    """Yield what is left when one thing is taken away, the largest things first; each has fewer workers, slots or
    requests, or less load or size in all, so that shrinking ends."""
    G, held = len(step.free), placement > 0
    if G > 1:
        for g in range(G):
            rest = [w for w in range(G) if w != g]
            yield _step(step, workers=rest, copies=np.array(step.copies) - placement[g])
    for pick in (0, -1):  # one slot of every worker, with the smallest or the largest request that it holds
        gone = np.zeros(len(step.sizes), np.int64)
        for g in range(G):
            if step.free[g]:
                gone[np.flatnonzero(held[g])[pick]] += 1
        if gone.any():
            yield _step(step, free=[max(0, slots - 1) for slots in step.free], copies=np.array(step.copies) - gone)
    for g, j in np.argwhere(held).tolist():
        free = [slots - (w == g) for w, slots in enumerate(step.free)]
        yield _step(step, free=free, copies=np.array(step.copies) - (np.arange(len(step.sizes)) == j))
    for j, waiting in enumerate((np.array(step.copies) - placement.sum(axis=0)).tolist()):
        for fewer in sorted({waiting, 1} if waiting else set(), reverse=True):
            yield _step(step, copies=np.array(step.copies) - fewer * (np.arange(len(step.sizes)) == j))
    if min(step.before) > 0:
        yield _step(step, before=[load - min(step.before) for load in step.before])
    for g, load in enumerate(step.before):
        for lower in sorted({0, load // 2, load - 1} if load else set()):
            yield _step(step, before=[lower if w == g else one for w, one in enumerate(step.before)])
    for j, size in enumerate(step.sizes):
        for lower in sorted({1, size // 2, size - 1} if size > 1 else set()):
            yield _step(step, sizes=[max(1, lower) if i == j else one for i, one in enumerate(step.sizes)])


def _step(
    step: SmallStep, *, workers: Any = None, before: Any = None, free: Any = None, sizes: Any = None, copies: Any = None
) -> SmallStep:
    """Return `step` with some parts replaced; sizes that became equal are one size."""
    before, free = before or list(step.before), free if free is not None else list(step.free)
    if workers is not None:
        before, free = [before[g] for g in workers], [free[g] for g in workers]
    requests = np.repeat(sizes or list(step.sizes), step.copies if copies is None else copies)
    return SmallStep.of(before, free, requests)
