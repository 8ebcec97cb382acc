"""Names of the array types that kernels take and give, and the records in which they keep named numbers.

A record is a NumPy structured scalar whose fields compiled code reads and sets by name, ``state.used += 1``; it is
passed as one pointer and changed in place. `records` makes an array of them, ``nodes[i].bound``. Both behave alike in
Python, under ``NUMBA_DISABLE_JIT=1`` too, because they are `numpy.recarray`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
#: One record, or an array of records; which fields it has is said where it is declared.
Record = Any
Records = Any


def integers(*names: str) -> np.dtype[np.void]:
    """Return the type of a record of 64-bit integers with these names, none of which an array has already."""
    taken = [name for name in names if hasattr(np.recarray, name) or hasattr(np.record, name)]
    if taken:
        raise ValueError(f"NumPy would read its own attribute, not the field: {', '.join(taken)}")
    return np.dtype((np.record, np.dtype([(name, np.int64) for name in names], align=True)))


def record(kind: np.dtype[np.void]) -> Record:
    """Return one record of zeros."""
    return np.zeros(1, dtype=(np.record, kind))[0]


def records(count: int, kind: np.dtype[np.void]) -> Records:
    """Return `count` records of zeros."""
    return np.zeros(count, dtype=kind).view(np.recarray)
