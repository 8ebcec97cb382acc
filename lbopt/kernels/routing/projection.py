"""What the running requests will hold over the window h = 0..H, by their forecasts.

A request of present size w and forecast c holds w + growth * h at step h and is gone when its forecast has run out
(BalanceRoute, eq. (7)): *cut*, it counts whole while h < c; *fractional*, its last step counts in part, by
min(1, c - h). One that is said to outlive the window, at a forecast of H, counts at every step; read literally ("alive
iff h < c") it would be gone at h = H, and all others with it.

Each request is touched once, where it leaves, and a running sum over the window does the rest: A + G * H operations.
"""

import math
from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Bools, Floats, Ints
from lbopt.kernels.compile import kernel


class Leaving(NamedTuple):
    """The running requests and when each is said to leave; (A,) each."""

    worker: Ints  # int64
    size: Ints  # int64, tokens held now
    remaining: Floats  # float64, its forecast, steps
    outlives: Bools  # whether a forecast of H says that it outlives the window


@kernel
def project(
    load: Ints,
    running: Ints,
    requests: Leaving,
    growth: int,
    fractional: bool,
    literal: bool,
    projected: Ints,
) -> None:
    """Write the projected loads, int64 (G, H+1), tokens, into `projected`.

    Parameters
    ----------
    load, running
        int64 (G,): tokens and running requests now.
    growth
        Tokens that a running request gains a step.
    fractional, literal
        How a request leaves, and whether one that outlives the window is gone at its last step.
    """
    worker, size, remaining, outlives = requests
    G, width = projected.shape
    H = width - 1
    gone = np.zeros((G, width), np.int64)  # tokens that are gone from h on, at the sizes of now
    fewer = np.zeros((G, width), np.int64)  # requests that are gone from h on
    projected[:] = 0
    for i in range(worker.size):
        c = remaining[i]
        if c >= H and outlives[i] and not literal:
            continue
        steps = math.floor(c) if fractional else math.ceil(c)
        if steps > H:
            continue
        g = worker[i]
        steps = max(steps, 0)
        gone[g, steps] += size[i]
        fewer[g, steps] += 1
        if fractional and c > steps:
            projected[g, steps] += int((size[i] + growth * steps) * (c - steps))
    for g in range(G):
        tokens = load[g]
        count = running[g]
        for h in range(width):
            tokens -= gone[g, h]
            count -= fewer[g, h]
            projected[g, h] += tokens + growth * h * count
