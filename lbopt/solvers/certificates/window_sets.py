"""Whether requests that are left fill all workers of a box exactly, by trying every set; for leaves without prices.

Only boxes in which every total is settled are asked about, so it is a question of exact sums: worker after worker, the
unknown requests in descending order of their classes, and in the end every request that must be admitted has to be
among those that were used.
"""

from __future__ import annotations

from collections.abc import Iterator

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates.window_box import WindowBox

#: Steps before the check gives up.
_PATIENCE = 200_000

#: Unknown requests up to which sets are tried: each is a level of the recursion.
_DEEPEST = 100


def has_sets(box: WindowBox) -> bool:
    """Return whether some assignment of the (tightened) box has its totals.

    Raises
    ------
    CertificateError
        Where a total is not settled, or the search becomes too long.
    """
    loose = [g for g in box.low if box.low[g] < box.high[g]]
    if loose:
        raise CertificateError(f"worker {loose[0]} may still have totals from {box.low[loose[0]]} on")
    pool, avail = box.pool, list(box.avail)
    rooms = [(box.missing(g), box.low[g] - box.held(g), box.next[g][1]) for g in box.low if box.missing(g)]
    if sum(r for r, _, _ in rooms) > _DEEPEST:
        raise CertificateError(f"sets of more than {_DEEPEST} unknown requests are not tried")
    steps = 0

    def sets(r: int, rest: int, last: int) -> Iterator[None]:
        """Take r requests with this total out of `avail`, in every way, and put them back."""
        nonlocal steps
        steps += 1
        if steps % 1_000 == 0:
            spend(1_000)
        if steps > _PATIENCE:
            raise CertificateError("whether its sets exist takes too long to find out")
        if r == 0:
            if rest == 0:
                yield
            return
        for k in range(last, -1, -1):
            if r * pool.sizes[k] < rest:
                break
            if avail[k] and pool.sizes[k] + pool.smallest[r - 1] <= rest:
                avail[k] -= 1
                yield from sets(r - 1, rest - pool.sizes[k], k)
                avail[k] += 1

    def workers(i: int) -> bool:
        if i == len(rooms):
            used = [n - left for n, left in zip(pool.counts, avail, strict=True)]
            return all(u >= forced for u, forced in zip(used, pool.forced, strict=True))
        return any(workers(i + 1) for _ in sets(*rooms[i]))

    return workers(0)
