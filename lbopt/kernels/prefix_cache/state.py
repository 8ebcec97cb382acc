"""The caches of all workers: `PrefixCache`. Its arrays are empty where nobody caches.

Blocks are numbered from 0; a block's number stands for its tokens and all before it. What a worker holds is a chain in
the order of last use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Ints
from lbopt.kernels.by_reference import by_reference

Links = NDArray[np.int32]

# links of a block that is at an end of the chain, or not held
NONE = -1
ABSENT = -2


@by_reference
class PrefixCache(NamedTuple):
    """Caches of G workers, of M different blocks."""

    first: Ints  # int64 (N + 1,), where the blocks of a request begin in `blocks`
    blocks: Ints  # int64 (K,), full blocks of the prompts, in order
    newer: Links  # int32 (G, M), the block used next after this one; NONE or ABSENT
    older: Links  # int32 (G, M)
    newest: Ints  # int64 (G,)
    oldest: Ints  # int64 (G,)
    held: Ints  # int64 (G,), blocks
    to_compute: Ints  # int64 (G,), scratch: tokens that come before a request's first token, if it goes there
