"""Units for a batch of requests that goes to one instance: a rule by number, as in `kernels.routing`.

A rule sees the batch in order of arrival and the tokens that each unit still has to compute; it writes a unit for each
position, or -1 to leave the request at the scheduler. Only the part of a prompt that is not cached on the unit costs.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.codes import IN_TURN, LONGEST_FIRST
from lbopt.kernels.prefill.tables import Requests


@kernel
def cost(requests: Requests, i: int, g: int, d: int) -> int:
    """Return the tokens that request i costs on unit d of instance g."""
    if requests.hits.size == 0:
        return requests.length[i]
    return requests.length[i] - requests.hits[i, g, d]


@kernel
def least_cost(requests: Requests, i: int, g: int) -> int:
    """Return the tokens that request i costs where most of it is cached, on instance g."""
    if requests.hits.size == 0:
        return requests.length[i]
    return requests.length[i] - requests.hits[i, g].max()


@kernel
def defers(code: int) -> bool:
    """Tell whether the rule is shown the whole queue and chooses; else it places all of a batch that fits."""
    return False


@kernel
def allocate(code: int, requests: Requests, batch: Ints, g: int, load: Ints, turn: Ints, key: Ints, unit: Ints) -> None:
    """Write the unit of each position of `batch` into `unit`, and what it costs there into `load`.

    Parameters
    ----------
    batch
        int64 (m,): request numbers, the oldest first.
    load
        int64 (D,): tokens that each unit of instance g has to compute; changed in place.
    turn
        int64 (N,): how many requests IN_TURN has placed on each instance; changed in place.
    key
        int64 (>= m,): scratch.
    unit
        int64 (>= m,): output.
    """
    m = batch.size
    if code == LONGEST_FIRST and m > 1:
        for k in range(m):
            key[k] = -requests.length[batch[k]]
        for k in np.argsort(key[:m], kind="mergesort"):  # equal lengths: the oldest first
            unit[k] = _place(code, requests, batch[k], g, load, turn)
    else:
        for k in range(m):
            unit[k] = _place(code, requests, batch[k], g, load, turn)


@kernel
def _place(code: int, requests: Requests, i: int, g: int, load: Ints, turn: Ints) -> int:
    d = 0
    if code == IN_TURN:
        d = turn[g] % load.size
        turn[g] += 1
    else:
        for other in range(1, load.size):
            if load[other] < load[d]:
                d = other
    load[d] += cost(requests, i, g, d)
    return d
