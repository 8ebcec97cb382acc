"""A deployment: how a model stands on devices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lbopt.exceptions import InputError


@dataclass(frozen=True, slots=True)
class Deployment:
    """How a model stands on devices.

    Parameters
    ----------
    devices_per_worker
        Devices that share the matrices of one worker (tensor parallelism, TP).
    expert_parallel
        Whether the experts of a layer are spread over the devices of all workers, so that tokens of all workers meet
        there; else each worker holds all of them. Says nothing of a dense model.
    kv_bytes, weight_bytes
        Bytes of a cached value and of a parameter; left out, those of the model's card with its ends. At 1 byte or less
        weights are multiplied at the device's 8-bit rate.
    query_tokens
        Tokens of a request that a step computes: 1, or more where later ones are guessed and verified (multi-token
        prediction). A step then yields up to as many. How many it yields is no part of its time: a price takes it from
        `accepted`, a simulation from `Detail.draft` and `Detail.acceptance`.
    overlap
        Share of dispatch and combine that is hidden behind computation, 0 to 1; 0: every message is waited for.
    balancedness
        Mean over maximum of the tokens that devices get for their experts, above 0 to 1, where experts are spread over
        several workers; 1: all devices get as many.
    gate
        As in `expected_active`; left out, uniform.
    """

    devices_per_worker: int = 1
    expert_parallel: bool = True
    kv_bytes: float | None = None
    weight_bytes: float | None = None
    query_tokens: int = 1
    gate: tuple[float, ...] | None = None
    overlap: float = 0.0
    balancedness: float = 1.0

    def __post_init__(self) -> None:
        for name in ("devices_per_worker", "query_tokens"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected 1 or more")
        for name in ("kv_bytes", "weight_bytes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} is {value}; expected a finite number above 0")
        if not 0 <= self.overlap <= 1:
            raise InputError(f"overlap is {self.overlap}; expected a share of the messages from 0 to 1")
        if not 0 < self.balancedness <= 1:
            raise InputError(
                f"balancedness is {self.balancedness}; expected more than 0 and at most 1: the mean over the maximum "
                "of the devices' tokens"
            )

    def hot(self, num_workers: int, together: bool) -> float:
        """Return the factor by which experts take longer on the busiest device than on the mean one."""
        return 1 / self.balancedness if together and num_workers > 1 else 1.0
