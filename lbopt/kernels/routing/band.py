"""Among workers that a request prefers nearly as much as its favourite, the one with fewest requests.

The band holds every worker whose preference is within `width` of the greatest. Ties in requests go to the greater
preference, then to the lower number. Width 0 is the favourite, a width of the whole range join-shortest-queue.

Source: ELDR (arXiv 2607.00466), section on locality-band routing; the tie rules are ours.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

#: What rounding may take from a preference without pushing the favourite, or its equal, out of the band.
TOLERANCE = 1e-12


@kernel
def bind_in_band(width: float, preference: Floats, running: Ints, queued: Ints) -> int:
    """Return the worker to which a request is bound on arrival.

    Parameters
    ----------
    width
        0 or more.
    preference
        float64 (G,), of the request for each worker.
    running, queued
        int64 (G,).
    """
    greatest = preference[0]
    for g in range(1, preference.size):
        greatest = max(greatest, preference[g])
    least = greatest - width - TOLERANCE
    best = -1
    for g in range(preference.size):
        if preference[g] < least:
            continue
        if best < 0:
            best = g
            continue
        here, there = running[g] + queued[g], running[best] + queued[best]
        if here < there or (here == there and preference[g] > preference[best]):
            best = g
    return best
