"""Routers of a user, as a file that `--policy FILE:function` names."""

import numpy as np


def lightest(observation):
    """Send each of the oldest requests to the lightest worker with a free slot."""
    loads, free = observation.loads.copy(), observation.free_slots.copy()
    workers = np.full(observation.sizes.size, -1)
    for i in range(observation.num_admissible):
        g = min((g for g in range(loads.size) if free[g] > 0), key=lambda g: (loads[g], g))
        workers[i] = g
        loads[g] += observation.sizes[i]
        free[g] -= 1
    return workers
