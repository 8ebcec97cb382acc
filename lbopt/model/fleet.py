"""The fleet: G equal workers of B slots each, and optionally how many KV tokens one of them can hold."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.exceptions import InputError
from lbopt.kinds import refuse_kinds
from lbopt.model.integers import LARGEST_TOTAL

#: Far beyond any machine that exists, and small enough that no sum over the fleet overflows.
MOST_WORKERS = 2**20
MOST_SLOTS = 2**31


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
        Tokens that fit into one worker's KV memory; None means unlimited. Exceeding it is reported, and
        prevented where workers are simulated in detail.
    """

    num_workers: int
    slots_per_worker: int
    kv_capacity: int | None = None

    def __post_init__(self) -> None:
        refuse_kinds(self)
        for name, value, largest in (
            ("num_workers", self.num_workers, MOST_WORKERS),
            ("slots_per_worker", self.slots_per_worker, MOST_SLOTS),
            ("kv_capacity", self.kv_capacity, LARGEST_TOTAL),
        ):
            if value is not None and not 1 <= value <= largest:
                raise InputError(f"{name} is {value}; expected a whole number from 1 to {largest}")

    @property
    def num_slots(self) -> int:
        """Slots of the whole fleet, G * B."""
        return self.num_workers * self.slots_per_worker
