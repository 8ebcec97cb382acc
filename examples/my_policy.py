"""Routing rules of your own, as plain Python functions.

A rule is a function that gets a read-only `Observation` and returns one whole number for each waiting request: the
worker to start it on, or -1 to let it wait. Name it as `path/to/file.py:function` wherever lbopt takes a policy:

    lbopt simulate burstgpt-like --policy examples/my_policy.py:lightest_first --requests 2000
    lbopt gap burstgpt-like --requests 2000 --states 10 --policy br-0 --policy examples/my_policy.py:lightest_first

What an observation shows (G workers, n waiting requests; all arrays are int64 and cannot be written to):

    loads           (G,)  tokens resident on each worker
    free_slots      (G,)  requests that each worker can still take
    running         (G,)  requests that run on each worker
    queued          (G,)  requests bound to each worker that have not started (immediate admission)
    queued_tokens   (G,)  their prompt tokens
    sizes           (n,)  prompt tokens of the waiting requests, in order of revelation
    waited          (n,)  steps that each of them has waited
    requests        (n,)  their numbers in the trace
    step, clock           decode steps so far, and seconds

How long a request will run is not among them. A decision must send at most `free_slots[g]` requests to worker g. In a
simulation it may admit fewer than possible; in the one-step part of `lbopt gap` it has to admit exactly
`observation.num_admissible`, the smaller of n and the number of free slots, because the optimum does so too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.policies import Observation

Workers = NDArray[np.int64]


def lightest_first(observation: Observation) -> Workers:
    """Start the oldest requests, each on the worker with the least load among those with a free slot."""
    loads, free = observation.loads.copy(), observation.free_slots.copy()
    workers = np.full(observation.sizes.size, -1, dtype=np.int64)
    for i in range(observation.num_admissible):
        open_workers = np.flatnonzero(free > 0)
        g = open_workers[loads[open_workers].argmin()]
        workers[i] = g
        loads[g] += observation.sizes[i]
        free[g] -= 1
    return workers


def fewest_requests(observation: Observation) -> Workers:
    """Bind an arriving request to the worker with the fewest requests, running or queued."""
    return np.array([np.argmin(observation.running + observation.queued)])


#: Asked once per arriving request, which then queues at its worker. Without this line a function is pooled.
fewest_requests.admission = "immediate"  # type: ignore[attr-defined]
