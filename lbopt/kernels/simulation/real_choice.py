"""Does a decision matter? It has a real choice where placements that fill as many slots as they can differ in loads.

Without one every policy ties. Told in O(G + n), without enumeration:

* more wait than there are slots: *which*, as soon as two of them differ in size;
* all of them are admitted, to two or more workers: *where*, if a slot stays empty or two of them differ in size, and
  the open workers differ in load or one of them has two slots to stack requests on.

This is exact but for coincidences, in which different placements happen to give the same loads (two workers of 0 and 5
tokens with two and one slots, and two requests of 5).
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def has_real_choice(load: Ints, running: Ints, slots_per_worker: int, pool: Ints, prompt: Ints) -> int:
    """Return 1 where the pooled decision has a real choice, else 0.

    Parameters
    ----------
    load, running
        int64 (G,), tokens and requests of each worker.
    slots_per_worker
        B.
    pool
        int64 (n,), the numbers of the requests that wait.
    prompt
        int64 (N,), tokens, by request number.
    """
    n = pool.size
    if n == 0 or load.size == 1:
        return 0  # a single worker waits for nobody, whatever it holds
    slots = 0
    most = 0
    first = -1
    open_workers = 0
    uneven = False
    for g in range(load.size):
        free = slots_per_worker - running[g]
        if free > 0:
            slots += free
            most = max(most, free)
            open_workers += 1
            if first < 0:
                first = g
            elif load[g] != load[first]:
                uneven = True
    if slots == 0:
        return 0
    if n > slots or (n == slots and open_workers > 1 and (uneven or most > 1)):
        return _two_sizes(pool, prompt)
    if n == slots or open_workers == 1:
        return 0
    weighty = 0  # a slot stays empty: an empty prompt changes no load wherever it goes
    for position in range(n):
        if prompt[pool[position]] > 0:
            weighty += 1
            if uneven or (weighty > 1 and most > 1):
                return 1
    return 0


@kernel
def _two_sizes(pool: Ints, prompt: Ints) -> int:
    """Return 1 where two of the waiting requests differ in size."""
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
