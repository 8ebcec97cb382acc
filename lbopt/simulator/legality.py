"""What a policy may not do: checks of decisions in Python, with policy, step and value named, and of stale sight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.policies import Observation, Policy, foresight_of
from lbopt.simulator.setting import SimulationSetting


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


def refuse_blind(policy: Policy, setting: SimulationSetting) -> None:
    """Refuse a policy that cannot work with what the telemetry of `setting` shows it."""
    telemetry = setting.telemetry
    if telemetry is None:
        return
    if foresight_of(policy) is not None:
        raise InputError(
            f"policy '{policy.name}' goes by a forecast of every running request, of which reports of workers say "
            "nothing; leave telemetry out, or take a rule without lookahead"
        )
    if policy.admission == "pooled" and (telemetry.front_ends > 1 or telemetry.own == "none"):
        raise InputError(
            f"policy '{policy.name}' keeps requests in one pool, whose router knows what it has sent: expected "
            f"own=optimistic and front_ends=1, not own={telemetry.own} and front_ends={telemetry.front_ends}; "
            "rules that bind requests on arrival take any"
        )
