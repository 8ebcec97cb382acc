"""One batch for one instance: what its units already have to compute, and what each request would add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model.integers import BoolArray, IntArray, boolean_array, integer_array
from lbopt.prefill.allocations import checked_hits
from lbopt.prefill.requests import MOST_TOKENS, checked_lengths


@dataclass(frozen=True, slots=True, eq=False)
class PrefillBatch:
    """A batch.

    Parameters
    ----------
    load
        int (D,), tokens that each unit has to compute without the batch: chunk less headroom.
    length
        int (n,), tokens of the prompts, >= 1, the oldest first.
    hits
        int (n, D), tokens of them cached on each unit, at most the length; None where nothing is cached.
    chunk
        Most tokens of a unit in a pass, >= 1.
    pending
        bool (n,), left over from earlier dispatches; None where there are none.
    """

    load: IntArray
    length: IntArray
    hits: IntArray | None = None
    chunk: int = MOST_TOKENS
    pending: BoolArray = None  # type: ignore[assignment]  # None on the way in, an array from then on

    def __post_init__(self) -> None:
        load = integer_array("load", self.load, ndim=(1,))
        if load.size == 0:
            raise InputError("load has no entries; expected one for each of at least 1 unit")
        length = checked_lengths(self.length, float(load.sum(dtype=np.float64)), "loads and prompts")
        if not 1 <= self.chunk <= MOST_TOKENS:
            raise InputError(f"chunk is {self.chunk}; expected 1 to 2**50 tokens")
        given: Any = self.pending
        pending = np.zeros(length.size, dtype=np.bool_) if given is None else given
        object.__setattr__(self, "load", load)
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "pending", boolean_array("pending", pending, length.size))
        if self.hits is not None:
            object.__setattr__(self, "hits", checked_hits(self.hits, length, load.size))

    @property
    def num_units(self) -> int:
        """Number of units, D."""
        return int(self.load.size)

    @property
    def num_requests(self) -> int:
        """Number of requests, n."""
        return int(self.length.size)

    @property
    def cost(self) -> NDArray[np.int64]:
        """Tokens that each request adds to each unit, int64 (n, D)."""
        cost = np.repeat(self.length[:, None], self.num_units, axis=1)
        return cost if self.hits is None else cost - self.hits

    def loads_after(self, unit: Any) -> list[int]:
        """Return the tokens of each unit once request r is on ``unit[r]`` (-1: nowhere), in Python's integers."""
        chosen = np.asarray(unit)
        if chosen.shape != (self.num_requests,) or chosen.dtype.kind not in "iu":
            raise InputError(f"unit has shape {chosen.shape}; expected a whole number for each of {self.num_requests}")
        if ((chosen < -1) | (chosen >= self.num_units)).any():
            r = int(np.argmax((chosen < -1) | (chosen >= self.num_units)))
            raise InputError(f"unit[{r}] is {chosen[r]}; expected 0 to {self.num_units - 1}, or -1 for nowhere")
        loads: list[int] = self.load.tolist()
        for r, d in enumerate(chosen.tolist()):
            if d >= 0:
                loads[d] += int(self.length[r]) - (0 if self.hits is None else int(self.hits[r, d]))
        return loads


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
