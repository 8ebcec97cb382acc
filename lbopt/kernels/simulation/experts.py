"""How many different experts the requests of a worker use in a step.

Requests choose independently, so a step of worker g is expected to use sum_e (1 - prod_r (1 - p_r(e))) experts of a
layer. The logarithms of those products are kept for every worker and cell: a request adds its row when it starts and
takes it away when it ends, and the sum is made anew for workers that a request joined or left. Cost: L * E a change.

Most of that cost are the terms 1 - prod, and a request leaves those of experts that it never uses as they are. So terms
are kept with the logarithms that they are of, and computed where these have changed; they are summed anew in the same
order, so that the sum is the same to the last bit.
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
def count_experts(
    layers: int, unused: Floats, changed: Ints, used: Floats, known_of: Floats, known_terms: Floats
) -> None:
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
    known_of, known_terms
        float64 (G, L * E), values of `unused` when last counted, and expm1 of them; changed in place. Zeros at first.
    """
    for w in range(used.size):
        if changed[w] == 1:
            count_of_worker(w, layers, unused, changed, used, known_of, known_terms)


@kernel
def count_of_worker(
    w: int, layers: int, unused: Floats, changed: Ints, used: Floats, known_of: Floats, known_terms: Floats
) -> None:
    """Count the experts in use on one worker anew.

    Parameters
    ----------
    w
        Worker.
    layers, unused, changed, used, known_of, known_terms
        As in `count_experts`.
    """
    now, of, terms = unused[w], known_of[w], known_terms[w]
    others = np.empty(now.size, np.int64)
    count = 0
    for c in range(now.size):  # apart from the loop below: whether a cell has changed is no branch here
        others[count] = c
        count += now[c] != of[c]
    for k in range(count):
        c = others[k]
        of[c] = now[c]
        terms[c] = math.expm1(now[c])
    total = 0.0
    for c in range(terms.size):
        total -= terms[c]
    used[w] = total / layers
    changed[w] = 0
