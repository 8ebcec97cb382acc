"""The k smallest of every token's scaled keys: which experts it chooses."""

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def pick(keys: NDArray[np.float32], scale: NDArray[np.float32], row: Ints, k: int, chosen: Ints) -> None:
    """Add one to `chosen` for each of the k experts with the smallest keys * scale; the first of equal ones.

    The k smallest so far stand in ascending order, and nearly every expert fails against the last of them.

    Parameters
    ----------
    keys
        float32 (n, E), one row a token.
    scale, chosen
        float32 and int64 (m, E); `chosen` is added to.
    row
        int64 (n,), the row of `scale` and `chosen` that each token belongs to.
    """
    n, E = keys.shape
    least, experts = np.empty(k, dtype=np.float32), np.empty(k, dtype=np.int64)
    for t in range(n):
        r = row[t]
        held = 0
        for e in range(E):
            key = keys[t, e] * scale[r, e]
            if held == k:
                if key >= least[k - 1]:
                    continue
                place = k - 1
            else:
                place = held
                held += 1
            while place > 0 and least[place - 1] > key:
                least[place] = least[place - 1]
                experts[place] = experts[place - 1]
                place -= 1
            least[place] = key
            experts[place] = e
        for s in range(k):
            chosen[r, experts[s]] += 1
