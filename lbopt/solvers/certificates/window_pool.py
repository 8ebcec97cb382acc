"""The decision over a window that every new request outlives, for the checker: plain integers, the standard library.

Every request i has work[i][h] = size_i + a(h) with one profile a, and every slot is filled by exactly one request
(short pools are filled up with empty requests, which is the same only where a = 0). Then worker g with c_g free slots
carries P[g][h] + S_g, where P[g][h] = base[g][h] + c_g a(h) and S_g is the total size that it receives.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from lbopt.exceptions import CertificateError
from lbopt.solvers.recount import Numbers

#: Totals are kept as bits up to so many tokens, and as a list up to so many combinations.
_BITS, _LISTED = 1 << 19, 20_000

#: Totals of more requests are kept only where they can be listed.
_MOST_BY_BITS = 6


@dataclass(frozen=True)
class WindowPool:
    """Sizes by class (ascending), copies, and the loads without sizes.

    Parameters
    ----------
    sizes, counts, forced
        Of each class: tokens, requests, and how many of these must be admitted (0 where all are admitted anyway).
    slots
        Free slots of each worker.
    loads
        P[g][h], tokens.
    """

    sizes: list[int]
    counts: list[int]
    forced: list[int]
    slots: list[int]
    loads: list[list[int]]

    @classmethod
    def of(cls, p: Numbers) -> WindowPool:
        """Return the decision; a CertificateError says where it is of another kind."""
        profile = [w - p.work[0][0] for w in p.work[0]] if p.work else [0] * len(p.base[0])
        for i, row in enumerate(p.work):
            if [w - row[0] for w in row] != profile:
                raise CertificateError(f"requests 0 and {i} follow different profiles, and this kind needs one for all")
        missing = sum(p.slots) - len(p.work)
        if missing > 0 and any(profile):
            raise CertificateError(f"{missing} slots stay empty, and this kind needs a request in every slot")
        sizes = [row[0] for row in p.work]
        copies = Counter(sizes)
        if missing > 0:
            copies[0] += missing
        forced = Counter(size for size, must in zip(sizes, p.must, strict=False) if must)
        classes = sorted(copies)
        return cls(
            sizes=classes,
            counts=[copies[size] for size in classes],
            forced=[forced[size] if missing < 0 else 0 for size in classes],
            slots=p.slots,
            loads=[
                [b + c * a for b, a in zip(row, profile, strict=True)] for row, c in zip(p.base, p.slots, strict=True)
            ],
        )

    @cached_property
    def open_workers(self) -> list[int]:
        """Workers with free slots."""
        return [g for g, c in enumerate(self.slots) if c > 0]

    @cached_property
    def smallest(self) -> list[int]:
        """Totals of the 0, 1, 2, ... smallest requests, up to the most slots of a worker."""
        return self._totals(range(len(self.sizes)))

    @cached_property
    def largest(self) -> list[int]:
        """Totals of the 0, 1, 2, ... largest requests."""
        return self._totals(range(len(self.sizes) - 1, -1, -1))

    def _totals(self, order: range) -> list[int]:
        totals = [0]
        for k in order:
            for _ in range(min(self.counts[k], max(self.slots) + 1 - len(totals))):
                totals.append(totals[-1] + self.sizes[k])
        return totals

    @cached_property
    def _bits(self) -> list[int]:
        """Bit t of entry c: whether some c requests have the total t."""
        most = min(max(self.slots), _MOST_BY_BITS, _BITS // max(1, self.sizes[-1]))
        bits = [1] + [0] * most
        for size, count in zip(self.sizes, self.counts, strict=True):
            for _ in range(min(count, most)):
                for c in range(most, 0, -1):
                    bits[c] |= bits[c - 1] << size
        return bits

    @cached_property
    def _lists(self) -> list[list[int]]:
        """Entry c: totals of c requests, ascending, a class used as often as one likes; as long as they are few."""
        lists = [[0]]
        while len(lists) <= max(self.slots) and len(lists[-1]) * len(self.sizes) <= _LISTED:
            lists.append(sorted({total + size for total in lists[-1] for size in self.sizes}))
        return lists

    def total_beside(self, count: int, t: int, up: bool) -> int | None:
        """Return a total next to t that `count` requests of the full pool may have: >= t (up) or <= t; None = none.

        Where nothing is known it is t itself.
        """
        if count < len(self._bits):
            bits = self._bits[count]
            if up:
                above = bits >> max(t, 0)
                return max(t, 0) + (above & -above).bit_length() - 1 if above else None
            below = bits & ((1 << (t + 1)) - 1) if t >= 0 else 0
            return below.bit_length() - 1 if below else None
        if count < len(self._lists):
            totals = self._lists[count]
            at = bisect_left(totals, t) if up else bisect_right(totals, t) - 1
            return totals[at] if 0 <= at < len(totals) else None
        return t
