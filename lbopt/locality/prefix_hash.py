"""Hashes of KV blocks: each is of the whole prefix that the block ends, as attention makes its content depend on it."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


def block_hashes(tokens: NDArray[np.integer], block_size: int) -> list[bytes]:
    """Return the hash of each full block of `tokens`, int (n,): n // block_size hashes of 16 bytes, chained."""
    ids = np.ascontiguousarray(tokens, dtype=np.int64)
    hashes, before = [], b""
    for start in range(0, ids.size - block_size + 1, block_size):
        before = hashlib.blake2b(before + ids[start : start + block_size].tobytes(), digest_size=16).digest()
        hashes.append(before)
    return hashes
