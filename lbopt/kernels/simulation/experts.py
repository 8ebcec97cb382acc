"""How many different experts the requests of a worker use in a step.

Requests choose independently, so a step of worker g is expected to use sum_e (1 - prod_r (1 - p_r(e))) experts of a
layer. The logarithms of those products are kept for every worker and cell: a request adds its row when it starts and
takes it away when it ends, and the sum is made anew for workers that somebody joined or left. Cost: L * E a change.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel


@kernel
def join_experts(row: NDArray[np.float32], w: int, unused: Floats, changed: Ints) -> None:
    """Let a request with the logarithms `row`, float32 (L * E,), start on worker w."""
    of_worker = unused[w]
    for c in range(row.size):
        of_worker[c] += row[c]
    changed[w] = 1


@kernel
def leave_experts(row: NDArray[np.float32], w: int, left: int, unused: Floats, changed: Ints) -> None:
    """Let it end; with nobody `left` the sums are zero again, and rounding is forgotten."""
    of_worker = unused[w]
    if left == 0:
        of_worker[:] = 0.0
    else:
        for c in range(row.size):
            of_worker[c] -= row[c]
    changed[w] = 1


@kernel
def count_experts(layers: int, unused: Floats, changed: Ints, used: Floats) -> None:
    """Bring `used`, float64 (G,), up to date: different experts of a layer, the mean over layers."""
    for w in range(used.size):
        if changed[w] == 1:
            total = 0.0
            for c in range(unused.shape[1]):
                total -= math.expm1(unused[w, c])
            used[w] = total / layers
            changed[w] = 0
