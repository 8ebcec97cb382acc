"""Costs of all kinds as rows of a matrix, a block of rows at a time, with what may be used: for those who check.

What is forbidden: masked entries of a NumPy masked array, +infinity, and pairs that a list of candidates or a sparse
matrix does not hold. What is read here goes through NumPy alone, not through the kernels that assign.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Entries that are looked at together.
BLOCK_ENTRIES = 1 << 22

AnyArray = NDArray[Any]
Flags = NDArray[np.bool_]


class RowSource(ABC):
    """Costs that are made or read when asked for; `shape` is (N, K)."""

    shape: tuple[int, int]

    @abstractmethod
    def rows(self, begin: int, end: int) -> AnyArray:
        """Return the costs of points begin to end - 1, (end - begin, K); what is forbidden is masked or infinite."""


def in_blocks(costs: Any) -> Iterator[tuple[int, AnyArray, Flags]]:
    """Yield the first row of each block, its values with 0 where forbidden, and what may be used."""
    source = costs if isinstance(costs, RowSource) else None
    given = None if source is not None else costs if isinstance(costs, np.ma.MaskedArray) else np.asarray(costs)
    points, centres = source.shape if source is not None else given.shape  # type: ignore[union-attr]
    step = max(1, BLOCK_ENTRIES // max(1, centres))
    for begin in range(0, max(points, 1), step):
        end = min(begin + step, points)
        rows = source.rows(begin, end) if source is not None else given[begin:end]  # type: ignore[index]
        yield begin, *split(rows)


def split(rows: Any) -> tuple[AnyArray, Flags]:
    """Return values with 0 where forbidden, and what may be used."""
    values: AnyArray = np.ma.getdata(rows)
    allowed: Flags = ~np.ma.getmaskarray(rows)
    if values.dtype.kind == "f":
        allowed &= values != np.inf
    if not allowed.all():
        values = np.where(allowed, values, values.dtype.type(0))
    return values, allowed
