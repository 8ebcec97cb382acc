"""All requests placed under a target for the largest load: packed largest first, then slack is exchanged until all fit.

The target is the bound first, then more by growing steps until everything fits, then what is between, by halves; every
turn makes more exchanges (`kernels.search.exchange`) before a target is given up. It finds, and proves only by reaching
the bound. Where requests are few for each worker and loads uneven, it gets nearer to the bound than filling one worker
after the other.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import ENDLESS
from lbopt.kernels.search.exchange import exchange
from lbopt.kernels.search.fill import pack
from lbopt.kernels.search.state import KNOWN, Step
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.workspace import exchanging

#: Looks at an exchange for each request, in the first try of a target.
LOOKS = 8

#: A worker is packed with so many times its share of the requests at most: more slots only make looks longer.
_SHARES = 4

#: Looks between two looks at the clock, some milliseconds: each is booked as a microsecond.
_SLICE = 4_000


class Packing:
    """Assignments of all requests with a smaller and smaller largest load.

    Parameters
    ----------
    base, slots, sizes
        int64 (G,), (G,), (N,), >= 0: loads before, free slots, sizes of the requests, all of which are placed.
    limits
        When the time is over; the seed of the draws.
    """

    def __init__(self, base: IntArray, slots: IntArray, sizes: IntArray, limits: Limits) -> None:
        self.base, self.limits = base, limits
        self.assignment: IntArray | None = None
        self.work = 0
        self._order = np.argsort(sizes, kind="stable")
        self._workers = np.flatnonzero(slots)
        share = -(-sizes.size // max(1, self._workers.size))
        room = np.minimum(slots, _SHARES * share)
        if room.sum() < sizes.size:
            room = np.minimum(slots, sizes.size)
        self._workers = self._workers[np.argsort(room[self._workers], kind="stable")]
        load, room = base[self._workers], room[self._workers]
        v, self._class, n = np.unique(sizes, return_inverse=True, return_counts=True)
        if v[0] > 0:
            v, n, self._class = np.append(0, v), np.append(0, n), self._class + 1
        self._members = n.copy()
        n[0] += room.sum()
        W, K, Q = load.size, v.size, int(room[-1])
        everything = int((v * n).sum())
        self._step = Step(
            v=v,
            n=n,
            floor=np.zeros(K, dtype=np.int64),
            load=load,
            slots=room,
            rank=np.arange(W),
            sums=np.zeros(Q + 1, dtype=np.int64),
            workers=base.size,
            total=int(base.sum()),
            heaviest=int(base.max()),
            scale=1,
            most=everything,
            least=0,
            forced=0,
        )
        self._known = record(KNOWN)
        self._known.seed, self._known.most = limits.seed, ENDLESS
        self._pattern = np.zeros((W, Q), dtype=np.int64)
        self._scratch = exchanging(W, K, Q)

    def improve(self, bound: int, largest: int, turn: int) -> Generator[None, None, bool]:
        """Look for assignments whose largest load is from `bound` on and below `largest`; return whether all is done.

        Parameters
        ----------
        bound, largest
            Least largest load that is conceivable, and that of the best assignment known, tokens.
        turn
            Each turn makes twice as many looks as the one before.
        """
        looks = LOOKS * self._class.size << turn
        failed, best, above = bound - 1, largest, 0
        while bound + above < best:
            if (yield from self._fits(bound + above, looks)):
                best = self._largest()
                break
            failed, above = bound + above, max(1, 4 * above)
        while best - failed > 1:  # between what failed and what fits
            middle = (failed + best) // 2
            if (yield from self._fits(middle, looks)):
                best = self._largest()
            else:
                failed = middle
        return best <= bound

    def _fits(self, target: int, looks: int) -> Generator[None, None, bool]:
        """Look for an assignment with no load above `target`, and keep it."""
        step, scratch, pattern = self._step, self._scratch, self._pattern
        if target < step.heaviest:
            return False
        tokens = int(pack(step, target, scratch.slack, scratch.number, pattern))
        while looks > 0 and tokens < step.most:
            some = min(looks, _SLICE)
            self._known.deadline = self.limits.deadline()
            tokens = int(exchange(step, scratch, self._known, target, step.most, some, 0, pattern))
            self._known.seed += 1
            looks -= some
            self.work += some
            yield
        if tokens < step.most:
            return False
        self._hand_out()
        return True

    def _hand_out(self) -> None:
        start = np.cumsum(self._members) - self._members
        assignment = np.full(self._class.size, -1, dtype=np.int64)
        for w, c in enumerate(self._step.slots.tolist()):
            for k in self._pattern[w, :c].tolist():
                if self._step.v[k] > 0:
                    assignment[self._order[start[k]]] = self._workers[w]
                    start[k] += 1
        self._place_empty(assignment)
        self.assignment = assignment

    def _place_empty(self, assignment: IntArray) -> None:
        """Place requests of size 0, which are left, where slots are."""
        left = np.flatnonzero(assignment < 0)
        if left.size:
            used = np.bincount(assignment[assignment >= 0], minlength=self.base.size)[self._workers]
            free = np.repeat(self._workers, self._step.slots - used)
            assignment[left] = free[: left.size]

    def _largest(self) -> int:
        assert self.assignment is not None, "it was found"
        loads = self.base.copy()
        np.add.at(loads, self.assignment, self._step.v[self._class])
        return int(loads.max())
