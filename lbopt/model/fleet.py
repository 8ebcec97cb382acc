"""The fleet: G equal workers of B slots each, and optionally how many KV tokens one of them can hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbopt.exceptions import InputError


@dataclass(frozen=True, slots=True)
class Fleet:
    """G workers with B slots each.

    Parameters
    ----------
    num_workers
        G >= 1.
    slots_per_worker
        B >= 1, requests that may run on one worker at a time.
    kv_capacity
        Tokens that fit into one worker's KV memory; None means unlimited. Exceeding it is reported, not prevented.
    """

    num_workers: int
    slots_per_worker: int
    kv_capacity: int | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("num_workers", self.num_workers),
            ("slots_per_worker", self.slots_per_worker),
            ("kv_capacity", self.kv_capacity),
        ):
            if name == "kv_capacity" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name} is {value!r}; expected a whole number of at least 1")

    @property
    def num_slots(self) -> int:
        """Slots of the whole fleet, G * B."""
        return self.num_workers * self.slots_per_worker
