"""Starts of the slots' random streams, by seed: equal for every policy, so that all meet the same ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def slot_streams(seed: int, *shape: int) -> NDArray[np.uint64]:
    """Return uint64 of that shape, from NumPy's SeedSequence: well mixed, and different for every seed."""
    count = int(np.prod(shape))
    words = np.random.SeedSequence(seed).generate_state(count, np.uint64)
    return words.astype(np.uint64, copy=False).reshape(shape)
