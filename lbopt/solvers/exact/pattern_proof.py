"""The tree of patterns that closes one envelope: worker after worker, the one with fewest patterns left first.

It is derived again by the same rule as in the descent that closed the envelope, and written as flat records in
preorder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.model.integers import IntArray
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates.writer import branch, dead


class PatternTree:
    """The tree of one envelope, from the lists of near-optimal patterns.

    Parameters
    ----------
    first, last
        Where the list of each worker begins, -1 = it has none, and ends.
    items, loss
        int64 (rows, .) and (rows,): the classes of the patterns, and their losses in 1/scale token, ascending in each
        list.
    slots, names
        Free slots of the workers, and their numbers in the problem.
    avail
        int64 (K,), requests of each class; changed in place and restored.
    most
        Records after which the tree is given up.
    """

    def __init__(
        self,
        *,
        first: list[int],
        last: list[int],
        items: IntArray,
        loss: IntArray,
        slots: list[int],
        avail: IntArray,
        names: list[int],
        most: int,
    ) -> None:
        self.most = most
        self.listed = [w for w in range(len(slots)) if first[w] >= 0]
        self.first, self.last, self.loss, self.slots, self.names = first, last, loss, slots, names
        self.avail = avail
        # copies[j, q]: how many requests of class items[j, q] pattern j takes; unused places ask for none
        width = np.zeros(loss.size, dtype=np.int64)
        for w in self.listed:
            width[first[w] : last[w]] = slots[w]
        used = np.arange(items.shape[1])[None, :] < width[:, None]
        same = (items[:, :, None] == items[:, None, :]) & used[:, None, :]
        self.items, self.copies = np.where(used, items, 0), np.where(used, same.sum(axis=2), 0)

    def records(self, budget: int) -> list[dict[str, Any]]:
        """Return the tree for this budget (1/scale tokens)."""
        out: list[dict[str, Any]] = []
        undecided = set(self.listed)
        self._visit(budget, undecided, out)
        return out

    def _visit(self, budget: int, undecided: set[int], out: list[dict[str, Any]]) -> None:
        if len(out) > self.most:
            raise CertificateError(f"the proof needs a tree of more than {self.most} records; it is not written down")
        spend(20 + self.loss.size // 50)
        viable = (self.avail[self.items] >= self.copies).all(axis=1) & (self.loss <= budget)
        least: dict[int, int] = {}
        for w in undecided:
            rows = np.flatnonzero(viable[self.first[w] : self.last[w]])
            if rows.size == 0:
                out.append(dead([self.names[w]]))
                return
            least[w] = int(self.loss[self.first[w] + int(rows[0])])  # ascending losses
        spare = budget - sum(least.values())
        heavy = [w for w in undecided if least[w] > 0]
        if spare < 0:
            out.append(dead([self.names[w] for w in heavy]))
            return
        if not undecided:
            raise CertificateError("the proof rests on workers with too many patterns to be listed; it is not written")
        counts = {
            w: int((viable & (self.loss <= spare + least[w]))[self.first[w] : self.last[w]].sum()) for w in undecided
        }
        w = min(undecided, key=lambda u: (counts[u], u))
        rows = self.first[w] + np.flatnonzero(viable[self.first[w] : self.last[w]])
        patterns = [self.items[j, : self.slots[w]].tolist() for j in rows]
        out.append(branch(self.names[w], patterns))
        rest = undecided - {w}
        for j, pattern in zip(rows.tolist(), patterns, strict=True):
            if self.loss[j] > spare + least[w]:
                out.append(dead([self.names[u] for u in heavy if u != w]))
                continue
            np.subtract.at(self.avail, pattern, 1)
            self._visit(budget - int(self.loss[j]), rest, out)
            np.add.at(self.avail, pattern, 1)
