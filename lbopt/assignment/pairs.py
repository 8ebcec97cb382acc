"""The pairs of points and centres that may be used, with integer costs: as a matrix, or listed row after row.

A matrix serves where most pairs may be used, and marks the others (`FORBIDDEN`). A list serves where each point has
few candidates: it holds their pairs alone. The kernels read both (`lbopt.kernels.assignment.state.Points`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.assignment.state import FORBIDDEN
from lbopt.model.integers import IntArray

ShortArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of N points and K centres.

    Parameters
    ----------
    centres
        K.
    costs
        int64 (N, K), `FORBIDDEN` where a pair must not be used; (0, K) where pairs are listed.
    start
        int64 (N + 1,), where the pairs of each point begin in the list; empty for a matrix.
    centre, cost
        int32 and int64 (E,), the listed pairs.
    gaps
        Whether any pair is forbidden.
    """

    centres: int
    costs: IntArray
    start: IntArray
    centre: ShortArray
    cost: IntArray
    gaps: bool

    @classmethod
    def of_matrix(cls, costs: IntArray, gaps: bool = False) -> Pairs:
        """Return the pairs of a matrix."""
        none = np.empty(0, dtype=np.int64)
        return cls(costs.shape[1], costs, none, np.empty(0, dtype=np.int32), none, gaps)

    @classmethod
    def of_lists(cls, centres: int, start: IntArray, centre: ShortArray, cost: IntArray) -> Pairs:
        """Return listed pairs.

        Parameters
        ----------
        centres
            K.
        start, centre, cost
            As above.
        """
        costs = np.empty((0, centres), dtype=np.int64)
        return cls(centres, costs, start, centre, cost, True)

    @property
    def listed(self) -> bool:
        """Whether pairs are listed."""
        return self.start.size > 0

    @property
    def points(self) -> int:
        """N."""
        return self.start.size - 1 if self.listed else len(self.costs)

    def nowhere(self) -> int | None:
        """Return the first point that may be at no centre, None if there is none."""
        if not self.gaps:
            return None
        alone = np.diff(self.start) == 0 if self.listed else (self.costs == FORBIDDEN).all(axis=1)
        return int(alone.argmax()) if alone.any() else None
