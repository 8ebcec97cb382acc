"""What a policy that decides in Python may not do: the checks of its decisions, with policy, step and value named."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InfeasibleDecisionError
from lbopt.policies import Observation


def refuse_infeasible(name: str, observation: Observation, workers: NDArray[Any]) -> None:
    """Check a pooled decision; admitting fewer than possible is a policy's right."""
    if workers.shape != observation.sizes.shape or workers.dtype.kind not in "iu":
        raise InfeasibleDecisionError(
            f"policy '{name}' returned {workers.dtype} values of shape {workers.shape} in step {observation.step}; "
            f"expected {observation.sizes.size} worker numbers, -1 for a request that keeps waiting"
        )
    G = observation.loads.size
    outside = np.flatnonzero((workers < -1) | (workers >= G))
    if outside.size:
        raise InfeasibleDecisionError(
            f"policy '{name}' sends request {observation.requests[outside[0]]} in step {observation.step} to worker "
            f"{workers[outside[0]]}; expected -1 or 0..{G - 1}"
        )
    counts = np.bincount(workers[workers >= 0], minlength=G)
    crowded = np.flatnonzero(counts > observation.free_slots)
    if crowded.size:
        g = crowded[0]
        raise InfeasibleDecisionError(
            f"policy '{name}' sends {counts[g]} requests in step {observation.step} to worker {g}, "
            f"which has {observation.free_slots[g]} free slots"
        )


def bound_worker(name: str, observation: Observation, workers: NDArray[Any]) -> int:
    """Return the one worker to which a policy that binds on arrival sends the one request it was shown; -1 = held."""
    G = observation.loads.size
    worker = int(workers[0]) if workers.shape == (1,) and workers.dtype.kind in "iu" else G
    if not -1 <= worker < G:
        raise InfeasibleDecisionError(
            f"policy '{name}' binds request {int(observation.requests[0])} in step {observation.step} to "
            f"{workers.tolist()}; expected a list of one worker of 0..{G - 1}, or of -1 to hold it back"
        )
    return worker
