"""The lists of all workers, before anything is decided."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.leximax.patterns import list_window


@kernel
def list_workers(
    v: Ints,
    n: Ints,
    base: Ints,
    slots: Ints,
    least: Ints,
    largest: Ints,
    profit: Ints,
    need: Ints,
    room: int,
    most: int,
    items: Ints,
    first: Ints,
    last: Ints,
    deadline: int,
) -> int:
    """List the patterns of each worker w with a load in its window and a profit of at least need[w]; return the rows.

    Rows first[w]..last[w] of `items` (R, Q) are those of worker w; first[w] = last[w] = -1 where there are more than
    `room`, or more than `most` branches to be looked at, or no rows left, or no time.

    Parameters
    ----------
    v, n, profit
        int64 (K,): sizes, tokens, ascending; requests (changed and put back); profits, 1/scale tokens.
    base, slots, need
        int64 (W,): loads before, tokens; slots; least profit, 1/scale tokens.
    least, largest
        int64 (W,): window of the load, tokens.
    room, most
        Most patterns of a worker; most branches looked at for them.
    items, first, last
        int64 (R, Q), (W,) and (W,), written: classes of each row; rows of each worker.
    deadline
        Nanoseconds, see `lbopt.kernels.deadline`.
    """
    end = 0
    for w in range(slots.size):
        first[w] = last[w] = -1
        if passed(deadline):
            continue
        stop, _, complete = list_window(
            *(v, n, profit, slots[w], least[w] - base[w], largest[w] - base[w], need[w]),
            *(room, most, items, end),
        )
        if complete:
            first[w], last[w] = end, stop
            end = stop
    return end
