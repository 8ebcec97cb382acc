"""A box of a window certificate, and everything that follows from it without any price.

A box bounds the total S_g of each open worker, and the classes of its largest requests, one position after another,
largest first. `tighten` applies rules that lose no assignment of the box:

* with r requests still unknown, the next one (the largest of them) has at least 1/r of what is missing to the low side,
  at most what the r - 1 smallest requests leave of the high side, and is no larger than the one before;
* a total has to be that of requests that are left: exactly so for one or two, by the full pool for more;
* a position with one class left uses up one of its requests.

Where every total is settled, an enumeration says whether disjoint sets have them all.

A box is a part of the decision over a window that every new request outlives, in plain integers. Every request i has
work[i][h] = size_i + a(h) with one profile a, and every slot is filled by exactly one request (short pools are filled
up with empty requests, which is the same only where a = 0). Then worker g with c_g free slots carries P[g][h] + S_g,
where P[g][h] = base[g][h] + c_g a(h) and S_g is the total size that it receives.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend
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


@dataclass
class WindowBox:
    """low and high by worker, and (first class, last class) by worker and position."""

    pool: WindowPool
    low: dict[int, int]
    high: dict[int, int]
    classes: dict[int, list[tuple[int, int]]]
    avail: list[int] = field(default_factory=list)
    known: dict[int, list[int]] = field(default_factory=dict)
    next: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def root(cls, pool: WindowPool, positions: int) -> WindowBox:
        """Return the box that holds everything, with so many positions for each worker."""
        every = (0, len(pool.sizes) - 1)
        return cls(
            pool,
            dict.fromkeys(pool.open_workers, 0),
            {g: pool.largest[pool.slots[g]] for g in pool.open_workers},
            {g: [every] * min(positions, pool.slots[g]) for g in pool.open_workers},
        )

    def within_totals(self, g: int, low: int, high: int) -> WindowBox:
        """Return the part of the box with low <= S_g <= high."""
        child = WindowBox(self.pool, dict(self.low), dict(self.high), self.classes)
        child.low[g], child.high[g] = max(low, self.low[g]), min(high, self.high[g])
        return child

    def within_sizes(self, g: int, position: int, least: int, most: int) -> WindowBox:
        """Return the part of the box in which that request of worker g has a size of least..most.

        Parameters
        ----------
        position
            Place of the request among those of the worker.
        least, most
            Range of sizes, tokens.
        """
        first, last = bisect_left(self.pool.sizes, least), bisect_right(self.pool.sizes, most) - 1
        own = list(self.classes[g])
        own[position] = (max(first, own[position][0]), min(last, own[position][1]))
        return WindowBox(self.pool, dict(self.low), dict(self.high), {**self.classes, g: own})

    # ------------------------------------------------------------------ what follows

    def tighten(self) -> bool:
        """Shrink the box; False where it turns out to be empty."""
        self.avail = list(self.pool.counts)
        self.known = {g: [] for g in self.low}
        self.classes = {g: list(own) for g, own in self.classes.items()}
        self.next = {g: own[0] for g, own in self.classes.items()}
        if any(self.low[g] > self.high[g] for g in self.low):
            return False
        # First what is already known of all positions: the rules then see what is left.
        for g, own in self.classes.items():
            for first, last in own:
                if first != last:
                    break
                if self.avail[first] == 0 or not self.next[g][0] <= first <= self.next[g][1]:
                    return False
                self._bind(g, first)
        waiting = True
        while waiting:
            waiting = False
            for g in self.low:
                while True:
                    if not self._sides(g):
                        return False
                    first, last = self.next[g]
                    at = len(self.known[g])
                    if at == len(self.classes[g]) or first < last:
                        break
                    self._bind(g, first)
                    waiting = True
        return True

    def _bind(self, g: int, k: int) -> None:
        self.avail[k] -= 1
        self.known[g].append(k)
        at = len(self.known[g])
        first, last = self.classes[g][at] if at < len(self.classes[g]) else (0, k)
        self.next[g] = (first, min(k, last))

    def held(self, g: int) -> int:
        """Return the total of the requests of worker g that are known."""
        return sum(self.pool.sizes[k] for k in self.known[g])

    def missing(self, g: int) -> int:
        """Return the number of requests of worker g that are not known."""
        return self.pool.slots[g] - len(self.known[g])

    def _sides(self, g: int) -> bool:
        """Shrink the sides of worker g, and the classes of its next request; False where nothing is left."""
        if not self._next_classes(g):
            return False
        low, high = self.total_beside(g, self.low[g], True), self.total_beside(g, self.high[g], False)
        if low is None or high is None or low > high:
            return False
        self.low[g], self.high[g] = low, high
        return self._next_classes(g)

    def _next_classes(self, g: int) -> bool:
        r = self.missing(g)
        if r == 0:
            return True
        sizes, held = self.pool.sizes, self.held(g)
        first, last = self.next[g]
        first = max(first, bisect_left(sizes, -((held - self.low[g]) // r)))
        last = min(last, bisect_right(sizes, self.high[g] - held - self.pool.smallest[r - 1]) - 1)
        while first <= last and self.avail[first] == 0:
            first += 1
        while first <= last and self.avail[last] == 0:
            last -= 1
        self.next[g] = (first, last)
        at = len(self.known[g])
        if at < len(self.classes[g]):
            self.classes[g][at] = (first, last)
        return first <= last

    def total_beside(self, g: int, t: int, up: bool) -> int | None:
        """Return the total >= t (up) or <= t next to t that worker g may have in this box; None = none."""
        held, r, sizes = self.held(g), self.missing(g), self.pool.sizes
        rest = t - held
        if r == 0:
            return held if (rest <= 0 if up else rest >= 0) else None
        first, last = self.next[g]
        if r == 1:
            found = self._single(first, last, rest, up)
        elif r == 2:
            found = self._pair(first, last, rest, up)
        else:
            least, most = max(self.pool.smallest[r], sizes[first] + self.pool.smallest[r - 1]), r * sizes[last]
            found = self.pool.total_beside(r, max(rest, least) if up else min(rest, most), up)
            found = found if found is not None and least <= found <= most else None
        return None if found is None else held + found

    def _single(self, first: int, last: int, t: int, up: bool) -> int | None:
        sizes, avail = self.pool.sizes, self.avail
        if up:
            around = range(max(first, bisect_left(sizes, t)), last + 1)
        else:
            around = range(min(last, bisect_right(sizes, t) - 1), first - 1, -1)
        return next((sizes[k] for k in around if avail[k]), None)

    def _pair(self, first: int, last: int, t: int, up: bool) -> int | None:
        """Try every larger request with the best partner of its class or below."""
        sizes, avail = self.pool.sizes, self.avail
        best: int | None = None
        for j in range(first, last + 1):
            if avail[j] == 0:
                continue
            top = j if avail[j] > 1 else j - 1
            partner = self._single(0, top, t - sizes[j], up)
            if partner is not None:
                total = sizes[j] + partner
                if total == t:
                    return t
                if best is None or (total < best if up else total > best):
                    best = total
        return best

    # ------------------------------------------------------------------ several workers

    def together(self, workers: list[int], at_most: bool) -> int | None:
        """Return what the workers hold together at most, or at least; None where the pool cannot fill them.

        Every unknown request of worker g is at most of the last class of `next`; and at least as large as what is
        missing when all others are of that class. Such limits are nested: going through the requests from the large
        end (or the small one), each goes to a place that may hold it and is still empty, whichever.
        """
        sizes = self.pool.sizes
        places: dict[int, int] = {}
        total, empty = 0, 0
        for g in workers:
            total += self.held(g)
            r = self.missing(g)
            if r == 0:
                continue
            empty += r
            first, last = self.next[g]
            if at_most:
                places[last] = places.get(last, 0) + r
                continue
            places[first] = places.get(first, 0) + 1
            if r > 1:
                least = self.low[g] - self.held(g) - (r - 1) * sizes[last]
                k = bisect_left(sizes, least)
                places[k] = places.get(k, 0) + r - 1
        if empty:
            ends = (max(places), -1, -1) if at_most else (min(places), len(sizes), 1)
            waiting = 0
            for k in range(*ends):
                waiting += places.get(k, 0)
                served = min(waiting, self.avail[k])
                total += served * sizes[k]
                waiting -= served
                empty -= served
                if empty == 0:
                    break
            if empty:
                return None
        if not any(self.pool.forced):
            return total
        forced = self._with_forced(workers, at_most)
        return None if forced is None else min(total, forced) if at_most else max(total, forced)

    def _with_forced(self, workers: list[int], at_most: bool) -> int | None:
        """Return the same by another reason: forced requests that have no place elsewhere are among them.

        Another worker with r unknown requests takes r forced ones at most, and only r - 1 where none is of the classes
        that its next request may have; none where all are larger than these.
        """
        pool, chosen = self.pool, set(workers)
        known = [n - left for n, left in zip(pool.counts, self.avail, strict=True)]
        owed = [max(0, forced - bound) for forced, bound in zip(pool.forced, known, strict=True)]
        smallest = next((k for k, missing in enumerate(owed) if missing), len(owed))
        needed = sum(owed)
        for g in self.low:
            r, (first, last) = self.missing(g), self.next[g]
            if g not in chosen and r > 0 and smallest <= last:
                needed -= r if any(owed[first : last + 1]) else r - 1
        needed = max(0, needed)
        free = sum(self.missing(g) for g in chosen) - needed
        if free < 0:
            return None
        total = sum(self.held(g) for g in chosen)
        order = range(len(owed) - 1, -1, -1) if at_most else range(len(owed))
        for k in order:
            taken = min(owed[k], needed)
            needed -= taken
            more = min(self.avail[k] - taken, free)
            free -= more
            total += (taken + more) * pool.sizes[k]
        return total


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
