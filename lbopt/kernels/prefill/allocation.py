"""Units for a batch of requests that goes to one instance: a rule by number, as in `kernels.routing`.

A rule sees the batch in order of arrival and the tokens that each unit still has to compute; it writes a unit for each
position, KEEP to leave the request at the scheduler until the next dispatch, or REFUSE. Only the part of a prompt that
is not cached on the unit costs.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.backfill import backfill
from lbopt.kernels.prefill.codes import BACKFILL, IN_TURN, LONGEST_FIRST, PBAA
from lbopt.kernels.prefill.cost import cost, least_loaded
from lbopt.kernels.prefill.pbaa import pbaa


@kernel
def chooses(code: int) -> bool:
    """Tell whether the rule is shown the whole queue and may keep or refuse; else it places a batch that has room."""
    return code in (PBAA, BACKFILL)


@kernel
def allocate(
    code: int,
    parameters: Record,
    length: Ints,
    hits: Ints,
    deferred: Ints,
    batch: Ints,
    g: int,
    turn: int,
    chunk: int,
    load: Ints,
    tops_up: bool,
    key: Ints,
    unit: Ints,
) -> None:
    """Write the unit of each position of `batch` into `unit`, and what it costs there into `load`.

    Parameters
    ----------
    code, parameters
        The rule, see `codes`, and its parameters, `state.PARAMETERS`.
    length, hits
        int64 (n,), (n, N, D): see `state.Requests`.
    deferred
        int64 (n,): how often each request was kept.
    batch
        int64 (m,): request numbers, the oldest first.
    turn
        How many requests were placed on instance g before.
    chunk
        Most tokens of a unit in a pass; less `load` it is the headroom of the unit.
    load
        int64 (D,): tokens that each unit of instance g has to compute; changed in place.
    tops_up
        Whether the pass that this is for has got a batch before.
    key
        int64 (>= m,): scratch.
    unit
        int64 (>= m,): output.
    """
    m = batch.size
    if code == PBAA:
        pbaa(parameters, length, hits, deferred, batch, g, chunk, load, key, unit)
    elif code == BACKFILL:
        backfill(parameters, length, hits, batch, g, chunk, load, tops_up, key, unit)
    elif code == LONGEST_FIRST and m > 1:
        for k in range(m):
            key[k] = -length[batch[k]]
        for k in np.argsort(key[:m], kind="mergesort"):  # equal lengths: the oldest first
            unit[k] = place(code, turn, load)
            load[unit[k]] += cost(length, hits, batch[k], g, unit[k])
    else:
        for k in range(m):
            unit[k] = place(code, turn + k, load)
            load[unit[k]] += cost(length, hits, batch[k], g, unit[k])


@kernel
def place(code: int, turn: int, load: Ints) -> int:
    """Return the unit of one request; ties go to the lowest number."""
    if code == IN_TURN:
        return turn % load.size
    return least_loaded(load)
