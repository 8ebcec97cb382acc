"""A column of unknown length that grows in place: the whole is never held twice, as it is when parts are joined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Column:
    """Numbers of one kind, to which parts are added.

    Parameters
    ----------
    kind
        Their dtype.
    """

    def __init__(self, kind: DTypeLike) -> None:
        self.array: NDArray[Any] = np.empty(0, dtype=kind)

    def __len__(self) -> int:
        return int(self.array.size)

    def extend(self, part: NDArray[Any]) -> None:
        """Add a part, (n,), at the end; no view of `array` may be in use."""
        size = self.array.size
        self.array.resize(size + part.size, refcheck=False)  # the system moves pages, it does not copy them
        self.array[size:] = part
