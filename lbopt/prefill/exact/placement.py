"""What is known of a batch after a solve; every value is counted again from the units, in exact integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill.exact.batch import PrefillBatch


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """A placement of the whole batch, and how good it is.

    Parameters
    ----------
    unit
        int64 (n,), the unit of each request.
    straggler
        Tokens of the fullest unit.
    bound
        No placement has a straggler of fewer tokens.
    proof
        Where the bound comes from, as in `solvers.Result`.
    """

    unit: NDArray[np.int64]
    straggler: int
    bound: int
    proof: str

    @property
    def optimal(self) -> bool:
        """Whether nothing better is possible."""
        return self.straggler == self.bound


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """A choice from the batch that fills the next pass.

    Parameters
    ----------
    unit
        int64 (n,), the unit of each request, -1 where it is kept.
    filled
        Tokens of the next pass, all units, each up to the chunk; as many as possible.
    overshoot
        Tokens beyond the chunks, left for later passes; as few as possible with that.
    pending
        Requests of earlier dispatches that are placed; as many as possible with both.
    bounds
        What is known of the best possible (filled, overshoot, pending), each with the ones before it as they are.
    proof
        Where the bounds come from, as in `solvers.Result`.
    """

    unit: NDArray[np.int64]
    filled: int
    overshoot: int
    pending: int
    bounds: tuple[int, int, int]
    proof: str

    @property
    def optimal(self) -> bool:
        """Whether nothing better is possible."""
        return (self.filled, self.overshoot, self.pending) == self.bounds


def straggler_of(batch: PrefillBatch, unit: NDArray[np.int64]) -> int:
    """Return the tokens of the fullest unit."""
    return max(batch.loads_after(unit))


def fill_of(batch: PrefillBatch, unit: NDArray[np.int64]) -> tuple[int, int, int]:
    """Return (filled, overshoot, pending requests placed)."""
    loads = batch.loads_after(unit)
    filled = sum(min(tokens, batch.chunk) for tokens in loads)
    return filled, sum(loads) - filled, int((batch.pending & (unit >= 0)).sum())
