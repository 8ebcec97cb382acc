"""Does a decision matter? A decision has a real choice where two feasible placements give different loads.

Counted: *which* (more wait than there are slots, and two of them differ in size) and *where* (two workers with a free
slot differ in load, and either a slot stays empty or two requests differ in size). On a trace that is far from
saturation few decisions have one, and every policy ties.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def has_real_choice(load: Ints, running: Ints, slots_per_worker: int, pool: Ints, prompt: Ints) -> int:
    """Return 1 where the pooled decision has a real choice, else 0."""
    if pool.size == 0:
        return 0
    slots = 0
    first = -1
    loads_differ = False
    for g in range(load.size):
        free = slots_per_worker - running[g]
        if free > 0:
            slots += free
            if first < 0:
                first = g
            elif load[g] != load[first]:
                loads_differ = True
    if slots == 0:
        return 0
    if loads_differ and pool.size < slots:
        return 1
    if not loads_differ and pool.size <= slots:
        return 0
    for position in range(1, pool.size):
        if prompt[pool[position]] != prompt[pool[0]]:
            return 1
    return 0


@kernel
def loads_differ(load: Ints, queued_tokens: Ints) -> int:
    """Return 1 where two workers differ in resident plus queued tokens: the choice of an immediate binding."""
    for g in range(1, load.size):
        if load[g] + queued_tokens[g] != load[0] + queued_tokens[0]:
            return 1
    return 0
