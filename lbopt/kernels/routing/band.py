"""Among workers that a request prefers nearly as much as its favourite, the one with fewest requests.

The band holds every worker whose preference is within `width` of the greatest. Ties in requests go to the greater
preference, then to the lower number. Width 0 is the favourite; the whole range is join-shortest-queue that
breaks ties by preference.

Source: ELDR (arXiv 2607.00466), section on locality-band routing; the tie rules are ours.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

#: What rounding may take from a preference without pushing the favourite, or its equal, out of the band.
TOLERANCE = 1e-12


@kernel
def bind_in_band(width: float, preference: Floats, row: int, running: Ints, queued: Ints) -> int:
    """Return the worker to which a request is bound on arrival.

    Parameters
    ----------
    width
        0 or more.
    preference, row
        float64 (M, G), and the row of it that holds the request's preference for each worker. A view of that row would
        count references, which costs more than the rule where many requests come at once.
    running, queued
        int64 (G,).
    """
    greatest = preference[row, 0]
    for g in range(1, running.size):
        greatest = max(greatest, preference[row, g])
    least = greatest - width - TOLERANCE
    best = -1
    for g in range(running.size):
        if preference[row, g] < least:
            continue
        if best < 0:
            best = g
            continue
        here, there = running[g] + queued[g], running[best] + queued[best]
        if here < there or (here == there and preference[row, g] > preference[row, best]):
            best = g
    return best
