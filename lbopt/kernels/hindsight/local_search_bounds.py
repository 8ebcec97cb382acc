"""What the barrier of a step cannot be below, however the requests that run in it are placed.

In step k the n requests that run have the sizes a + k, with a = prompt - start; so their order never changes while they
run, and a sorted list of the a is kept by insertion. The bounds of a step, in whole tokens:

- *mean*: ceil(W / G).
- *pigeonhole*: of the j G + 1 largest requests some worker holds j + 1, which show at least the j + 1 least of them.
  j = 0 is the largest request alone.
- *slots*: G - 1 workers hold at most (G - 1) B requests, so the worker of the largest request holds at least
  n - (G - 1) B of them, which show at least the largest and the least others.

The first is Graham's (1969), so are the pairs (j = 1); the third goes with bounded slots.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.stable_order import stable_order

#: The j of the pigeonhole that are tried: alone, pairs, threes, fours.
MOST = 4


@kernel
def _put(keys: Ints, n: int, key: int) -> None:
    """Insert into the ascending keys[:n]."""
    place = n
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        place -= 1
    keys[place] = key


@kernel
def _take(keys: Ints, n: int, key: int) -> None:
    """Remove from the ascending keys[:n]."""
    place = np.searchsorted(keys[:n], key)
    for other in range(place, n - 1):
        keys[other] = keys[other + 1]


@kernel
def least_barriers(start: Ints, prompt: Ints, output: Ints, workers: int, slots: int) -> Ints:
    """Return a bound of the barrier of each step, (K,).

    Parameters
    ----------
    start, prompt, output
        int64 (N,), requests in the order of their starts.
    workers, slots
        G and B.
    """
    N, last = start.size, 0
    for i in range(N):
        last = max(last, start[i] + output[i])
    leaving = stable_order(start + output)
    keys, bound = np.zeros(min(N, workers * slots) + 1, dtype=np.int64), np.zeros(last, dtype=np.int64)
    n, total, came, went = 0, 0, 0, 0
    for k in range(last):
        while went < N and start[leaving[went]] + output[leaving[went]] == k:
            key = prompt[leaving[went]] - start[leaving[went]]
            _take(keys, n, key)
            n, total, went = n - 1, total - key, went + 1
        while came < N and start[came] == k:
            key = prompt[came] - start[came]
            _put(keys, n, key)
            n, total, came = n + 1, total + key, came + 1
        if n == 0:
            continue
        least = -(-(total + n * k) // workers)
        for j in range(MOST):
            if j * workers + 1 > n:
                break
            together = 0
            for rank in range(j * workers - j, j * workers + 1):
                together += keys[n - 1 - rank] + k
            least = max(least, together)
        together = keys[n - 1] + k
        for rank in range(n - (workers - 1) * slots - 1):
            together += keys[rank] + k
        bound[k] = max(least, together)
    return bound
