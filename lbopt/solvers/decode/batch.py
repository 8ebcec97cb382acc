"""One batch for decode units: what each has and has room for, and what the requests are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray, integer_array

#: Requests, tokens and free slots in all, below which sums stay far from 2**63.
MOST = 2**50


@dataclass(frozen=True, slots=True, eq=False)
class DecodeBatch:
    """A batch, all of which is to be placed.

    Parameters
    ----------
    count, load
        int (N,), requests and tokens of each unit.
    length
        int (m,), tokens of the requests.
    room
        int (N,), how many of them each unit can take, at least m in all; None where each can take all.
    """

    count: IntArray
    load: IntArray
    length: IntArray
    room: IntArray = None  # type: ignore[assignment]  # None on the way in, an array from then on

    def __post_init__(self) -> None:
        for name in ("count", "load", "length"):
            object.__setattr__(self, name, integer_array(name, getattr(self, name), ndim=(1,)))
        N, m = self.count.size, self.length.size
        given: Any = self.room
        object.__setattr__(self, "room", integer_array("room", np.full(N, m) if given is None else given, ndim=(1,)))
        if N == 0 or {self.load.size, self.room.size} != {N}:
            raise InputError(
                f"count has {N} entries, load {self.load.size} and room {self.room.size}; expected one each for at "
                "least 1 unit"
            )
        for name in ("count", "load", "length", "room"):
            total = float(getattr(self, name).sum(dtype=np.float64))
            if total >= MOST:
                raise InputError(f"{name} has {total:.3g} in all; expected below 2**50")
        if int(self.room.sum()) < m:
            raise InputError(f"room is for {int(self.room.sum())} requests in all; expected at least the {m} of length")

    def counts_after(self, unit: Any) -> list[int]:
        """Return the requests on each unit once request r is on ``unit[r]``."""
        counts = self.count.tolist()
        return [count + list(unit).count(i) for i, count in enumerate(counts)]

    def loads_after(self, unit: Any) -> list[int]:
        """Return the tokens on each unit once request r is on ``unit[r]``."""
        loads: list[int] = self.load.tolist()
        for tokens, i in zip(self.length.tolist(), list(unit), strict=True):
            loads[i] += tokens
        return loads

    def barrier_after(self, unit: Any, alpha: int, beta: int) -> int:
        """Return the largest alpha * count + beta * load of a unit.

        Parameters
        ----------
        unit
            int64 (n,), the unit of each request.
        alpha
            Time per request, in whole units such as nanoseconds, >= 0.
        beta
            Time per token, in the same units, >= 0.
        """
        pairs = zip(self.counts_after(unit), self.loads_after(unit), strict=True)
        return max(alpha * count + beta * load for count, load in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class DecodePlacement:
    """A placement: `unit` int64 (m,), the `value` that was minimised last, its lower `bound` and where that is from."""

    unit: NDArray[np.int64]
    value: int
    bound: int
    proof: str

    @property
    def optimal(self) -> bool:
        """Whether nothing better is possible."""
        return self.value == self.bound

    @property
    def standing(self) -> str:
        """How sure the optimum is, as in `policies.ledger.STANDINGS`."""
        if not self.optimal:
            return "open"
        return "claimed" if self.proof.startswith("claimed:") else "searched" if self.proof == "search" else "proved"
