"""How many different experts the requests of a worker use in a step.

Requests choose independently, so a step of worker g is expected to use sum_e (1 - prod_r (1 - p_r(e))) experts of a
layer. The logarithms of those products are kept for every worker and cell: a request adds its row when it starts and
takes it away when it ends, and the sum is made anew for workers that a request joined or left. Cost: L * E a change.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel


@kernel
def join_experts(row: NDArray[np.float32], w: int, unused: Floats, changed: Ints) -> None:
    """Let a request start on worker w.

    Parameters
    ----------
    row
        float32 (L * E,), log of the chance that a step of the request does not use each expert.
    w
        Worker.
    unused
        float64 (G, L * E), sums of such rows over running requests; changed in place.
    changed
        int64 (G,), set to 1 for the worker.
    """
    of_worker = unused[w]
    for c in range(row.size):
        of_worker[c] += row[c]
    changed[w] = 1


@kernel
def leave_experts(row: NDArray[np.float32], w: int, left: int, unused: Floats, changed: Ints) -> None:
    """Let it end; without other requests the sums are zero again, and rounding is forgotten.

    Parameters
    ----------
    row, w, unused, changed
        As in `join_experts`.
    left
        Requests that still run on the worker.
    """
    of_worker = unused[w]
    if left == 0:
        of_worker[:] = 0.0
    else:
        for c in range(row.size):
            of_worker[c] -= row[c]
    changed[w] = 1


@kernel
def count_experts(layers: int, unused: Floats, changed: Ints, used: Floats) -> None:
    """Bring the number of experts in use up to date.

    Parameters
    ----------
    layers
        L.
    unused
        float64 (G, L * E), as in `join_experts`.
    changed
        int64 (G,), 1 where the number has to be counted anew; set to 0.
    used
        float64 (G,), different experts of a layer in use, mean over layers; changed in place.
    """
    for w in range(used.size):
        if changed[w] == 1:
            total = 0.0
            for c in range(unused.shape[1]):
                total -= math.expm1(unused[w, c])
            used[w] = total / layers
            changed[w] = 0
