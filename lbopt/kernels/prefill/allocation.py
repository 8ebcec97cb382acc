"""Units for a batch of requests that goes to one instance: a rule by number, as in `kernels.routing`.

A rule sees the batch in order of arrival and the tokens that each unit still has to compute; it writes a unit for each
position, KEEP to leave the request at the scheduler until the next dispatch, or REFUSE. Only the part of a prompt that
is not cached on the unit costs.

*Backfill*, which is ours. PBAA serves the longest first as soon as a queue is longer than a pass, and so keeps many
short ones waiting for few long ones. This rule keeps the order of arrival among batches and takes the order of length
only within one, as backfilling does in schedulers of parallel jobs.

1. The batch is the longest prefix of the queue whose cost does not exceed the headroom of all units, at least one.
2. The longest of it first, each goes to the least loaded unit if it fits there: if it needs no more passes than on an
   empty unit. So a prompt of at most a chunk fits as a whole, and of a longer one what is beyond its full chunks has to
   fit. Who does not fit is kept.
3. The next LOOKED of the queue, the oldest first, go to the least loaded unit if they fit.
4. If what is still kept would fill more than `split` hundredths of a pass, the oldest of it go to the least loaded unit
   while one has headroom, and are computed in parts: a queue that long costs more than a second pass. Not so where the
   pass has its batch already and is topped up.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.batch import Batch, cost, least_cost, least_loaded, longest_first
from lbopt.kernels.prefill.codes import BACKFILL, IN_TURN, KEEP, LONGEST_FIRST, PBAA
from lbopt.kernels.prefill.pbaa import pbaa

#: How many of the queue behind a batch are tried for what it leaves free.
LOOKED = 256


@kernel
def chooses(code: int) -> bool:
    """Tell whether the rule is shown the whole queue and may keep or refuse; else it places a batch that has room."""
    return code in (PBAA, BACKFILL)


@kernel
def allocate(batch: Batch, m: int, g: int, turn: int, chunk: int, tops_up: bool, load: Ints) -> None:
    """Write the unit of each of the first m positions of a batch for instance g, and what it costs there into `load`.

    Parameters
    ----------
    batch, m, g
        The batch, requests that are shown to the rule, and the instance.
    turn
        How many requests were placed there before.
    chunk
        Most tokens of a unit in a pass; less `load` it is the headroom of the unit.
    tops_up
        Whether the pass that this is for has got a batch before.
    load
        int64 (D,): tokens that each unit has to compute; changed in place.
    """
    code = batch.rule.code
    if code == PBAA:
        pbaa(batch, m, g, chunk, load)
        return
    if code == BACKFILL:
        _backfill(batch, m, g, chunk, tops_up, load)
        return
    length, hits, shown, unit = batch.length, batch.hits, batch.shown, batch.unit
    if code == LONGEST_FIRST and m > 1:
        for k in longest_first(length, shown, m, batch.key):
            unit[k] = least_loaded(load)
            load[unit[k]] += cost(length, hits, shown[k], g, unit[k])
        return
    for k in range(m):
        unit[k] = place(code, turn + k, load)
        load[unit[k]] += cost(length, hits, shown[k], g, unit[k])


@kernel
def place(code: int, turn: int, load: Ints) -> int:
    """Return the unit of one request; ties go to the lowest number."""
    return turn % load.size if code == IN_TURN else least_loaded(load)


@kernel
def _backfill(batch: Batch, m: int, g: int, chunk: int, tops_up: bool, load: Ints) -> None:
    """Write a unit or KEEP for each position of the batch, which is the whole queue."""
    length, hits, shown, unit = batch.length, batch.hits, batch.shown, batch.unit
    room = 0
    for d in range(load.size):
        room += max(0, chunk - load[d])
    prefix = 0
    while prefix < m and room > 0:
        room -= least_cost(length, hits, shown[prefix], g)
        if room < 0 and prefix > 0:
            break
        prefix += 1
    unit[:m] = KEEP
    for k in longest_first(length, shown, prefix, batch.key):
        unit[k] = _fit(length, hits, shown[k], g, chunk, load)
    for k in range(prefix, min(m, prefix + LOOKED)):
        unit[k] = _fit(length, hits, shown[k], g, chunk, load)
    kept = 0
    for k in range(m):
        if unit[k] == KEEP:
            kept += least_cost(length, hits, shown[k], g)
    if tops_up or 100 * kept <= batch.rule.split * load.size * chunk:
        return
    for k in range(m):
        if unit[k] == KEEP:
            d = least_loaded(load)
            if load[d] >= chunk:
                return
            unit[k] = d
            load[d] += cost(length, hits, shown[k], g, d)


@kernel
def _fit(length: Ints, hits: Ints, i: int, g: int, chunk: int, load: Ints) -> int:
    """Put request i on the least loaded unit if it needs no more passes there than on an empty one; return it or KEEP.

    Parameters
    ----------
    length, hits, i, g
        See `cost`.
    chunk, load
        Most tokens of a unit in a pass, and what each has; changed in place.
    """
    d = least_loaded(load)
    tokens = cost(length, hits, i, g, d)
    beyond = (max(1, tokens) - 1) % chunk + 1
    if load[d] > chunk - beyond:
        return KEEP
    load[d] += tokens
    return d
