"""How many requests each unit ends with: the least largest count, and counts as level as possible.

Counts fill up like water under lids. At level w unit i stands at clip(w, B_i, B_i + room_i); w is the last level that
the m requests reach, and the e that are left stand one above it. No counts are more level: a placement in which a unit
that got a request is two or more above one with room is made more level by moving the request, and where there are no
such two units the counts are these.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from lbopt.solvers.decode.batch import DecodeBatch


def least_largest_count(batch: DecodeBatch) -> int:
    """Return B*, the least possible largest count: the first at which all have room, and no unit is above it."""
    m, most = int(batch.length.size), int(batch.count.max())

    def taken(largest: int) -> int:
        return int(np.minimum(batch.room, np.maximum(largest - batch.count, 0)).sum())

    return most + bisect_left(range(m + 1), m, key=lambda rise: taken(most + rise))


def water_level(batch: DecodeBatch) -> tuple[int, int]:
    """Return (w, e): unit i ends at clip(w, count, count + room), and e of those at w with room left one higher."""
    top = batch.count + batch.room
    total = int(batch.count.sum()) + int(batch.length.size)
    lowest, highest = int(batch.count.min()), int(top.max())

    def requests(level: int) -> int:
        return int(np.clip(level, batch.count, top).sum())

    w = lowest + bisect_right(range(lowest, highest + 1), total, key=requests) - 1
    return w, total - requests(w)


def fewest_requests_first(batch: DecodeBatch) -> NDArray[np.int64]:
    """Follow Algorithm 3 without its mask: longest first, to the least (count, load) with room, lowest number on ties.

    The counts it ends with are as level as possible, since each step raises a lowest one.
    """
    unit = np.zeros(batch.length.size, dtype=np.int64)
    counts, loads, room = batch.count.tolist(), batch.load.tolist(), batch.room.tolist()
    for r in np.argsort(-batch.length, kind="stable").tolist():
        i = min((i for i, left in enumerate(room) if left), key=lambda i: (counts[i], loads[i], i))
        unit[r] = i
        counts[i] += 1
        room[i] -= 1
        loads[i] += int(batch.length[r])
    return unit
