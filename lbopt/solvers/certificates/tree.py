"""Walk a tree of decisions: who takes a request of a class, or a whole pattern, or that all that is left waits.

A *case* is a decision in which some requests have been placed: fewer copies, and workers with fewer slots and less
room. It is of the same kind as the whole, so any prices bound the tokens that it can admit,

    scale * T  <=  D = scale * (tokens placed) + sum_k (copies left of k) * price_k + sum_g B_g,

B_g being the best profit of worker g in the case, or a number above it. A case is refuted where a worker has no
patterns left, or where D less the least price of the requests that wait is below scale * needed: how many wait is known
(copies left less slots left, none of them forced), and they cost at least what that many of the cheapest do.

A placement of class k under prices splits a case: all copies of k that are left wait, or worker g takes one, for some
g. Together these cover the case (they may overlap). By the same inequality a way needs no subtree where

    g takes one:   D - B_g + (profit of k) + (best profit of one slot fewer in a room that is smaller by v_k)
    all wait:      D - (copies left of k) * price_k

is below scale * needed; all other ways have to be among the children. Forced copies cannot wait. A branch splits a case
by the whole pattern of worker g, and every pattern that loses at most D - scale * needed has to be among its children.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates.patterns import Patterns, Place, best_profits, refined
from lbopt.solvers.certificates.priced_body import Branch, Pattern, Placement, Refuted, Tree
from lbopt.solvers.certificates.profits import BestProfits
from lbopt.solvers.certificates.step import SizeClasses, extreme_total

#: Partial patterns that may be kept for one worker of one branch: a few hundred megabytes.
_PATIENCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """What is left after some placements: copies of each class, {worker: (slots, room)}, and the tokens placed."""

    left: tuple[int, ...]
    workers: dict[int, Place]
    placed: int

    def with_one(self, g: int, k: int, size: int) -> Case | None:
        """Return the case in which worker g takes one request of class k; None where it cannot."""
        slots, room = self.workers.get(g, (0, 0))
        if not slots or room < size or not self.left[k]:
            return None
        left = (*self.left[:k], self.left[k] - 1, *self.left[k + 1 :])
        workers = {**self.workers, g: (slots - 1, room - size)}
        if slots == 1:
            del workers[g]
        return Case(left, workers, self.placed + size)

    def with_pattern(self, g: int, pattern: Pattern, sizes: tuple[int, ...]) -> Case | None:
        """Return the case in which worker g takes a whole pattern; None where it cannot."""
        case: Case | None = self
        for k in pattern:
            case = None if case is None else case.with_one(g, k, sizes[k])
        return case

    def without(self, k: int) -> Case:
        """Return the case in which all that is left of class k waits."""
        return Case((*self.left[:k], 0, *self.left[k + 1 :]), self.workers, self.placed)


class TreeWalk:
    """The check of one tree.

    Parameters
    ----------
    classes, scale
        The size classes, and units of price per token.
    vectors
        The price vectors, {class: price}.
    workers
        {worker: (free slots, room)} of all open workers.
    needed
        What an assignment admits at least, if it is to be cheaper than the bound.
    """

    def __init__(
        self,
        classes: SizeClasses,
        scale: int,
        vectors: tuple[dict[int, int], ...],
        workers: dict[int, Place],
        needed: int,
    ) -> None:
        self._classes, self._scale, self._vectors, self._needed = classes, scale, vectors, needed
        self._root = Case(classes.counts, workers, 0)

    def check(self, tree: Tree) -> None:
        """Return if the tree proves that no assignment admits what is needed.

        Raises
        ------
        CertificateError
            Naming the record that does not hold.
        """
        cases: list[Case | None] = [self._root]  # None: impossible, so there is nothing to prove below
        for number, record in enumerate(tree):
            if not cases:
                raise CertificateError(f"the tree is complete after {number} records, but it has {len(tree)}")
            case = cases.pop()
            spend(100)
            if isinstance(record, Refuted):
                if case is not None:
                    self._check_refuted(case, record, number)
            elif isinstance(record, Placement):
                cases += reversed(self._placed(case, record, number))
            else:
                cases += reversed(self._decided(case, record, number))
        if cases:
            raise CertificateError(f"the tree ends after {len(tree)} records, and {len(cases)} cases are open")

    def _check_refuted(self, case: Case, record: Refuted, number: int) -> None:
        view = _View(self, case, record.prices)
        if view.spare >= view.waiting:
            raise CertificateError(
                f"record {number} of the tree calls a case refuted, but by prices {record.prices} up to "
                f"{self._needed + (view.spare - view.waiting) // self._scale} tokens are possible, and "
                f"{self._needed} are needed"
            )

    def _decided(self, case: Case | None, record: Branch, number: int) -> list[Case | None]:
        """Return the cases below a branch, whose patterns have to be all that worker g may take."""
        g, children = record.worker, record.patterns
        if case is None:
            return [None] * len(children)
        if g not in case.workers:
            raise CertificateError(f"record {number} of the tree names worker {g}, which has no free slots here")
        slots, sizes = case.workers[g][0], self._classes.sizes
        for pattern in children:
            if len(pattern) != slots or pattern[0] >= len(sizes):
                raise CertificateError(
                    f"record {number} of the tree: {list(pattern[:8])} is no pattern of worker {g}, which takes "
                    f"{slots} requests of the classes 0..{len(sizes) - 1}"
                )
        view = _View(self, case, record.prices)
        for pattern, lost in view.patterns(g) if view.spare >= 0 else ():
            if pattern not in children:
                raise CertificateError(
                    f"record {number} of the tree: pattern {list(pattern[:8])} of worker {g} is missing; it loses "
                    f"{lost} of the {view.spare} that may be lost"
                )
        return [case.with_pattern(g, pattern, sizes) for pattern in children]

    def _placed(self, case: Case | None, record: Placement, number: int) -> list[Case | None]:
        k = record.kind
        if k >= len(self._classes):
            raise CertificateError(
                f"record {number} of the tree places class {k}, but there are only {len(self._classes)} classes"
            )
        if len(set(record.workers)) < len(record.workers):
            raise CertificateError(f"record {number} of the tree names a worker twice: {list(record.workers[:8])}")
        if case is None:
            return [None] * (len(record.workers) + record.waits)
        view = _View(self, case, record.prices)
        if view.spare >= 0:
            if not record.waits and not self._classes.forced[k] and view.lost_waiting(k) <= view.spare:
                raise CertificateError(
                    f"record {number} of the tree leaves out that all of class {k} waits, which loses "
                    f"{view.lost_waiting(k)} of the {view.spare} that may be lost"
                )
            named = set(record.workers)
            for g, lost in view.lost_placing(k).items():
                if g not in named and lost <= view.spare:
                    raise CertificateError(
                        f"record {number} of the tree leaves out that worker {g} takes a request of class {k}, which "
                        f"loses {lost} of the {view.spare} that may be lost"
                    )
        waiting = case.without(k) if not self._classes.forced[k] or not case.left[k] else None
        size = self._classes.sizes[k]
        return ([waiting] if record.waits else []) + [case.with_one(g, k, size) for g in record.workers]


class _View:
    """What prices say about a case; `spare` is D - scale * needed, -1 where nothing is possible at all.

    `waiting` is what those that wait cost at least.
    """

    def __init__(self, walk: TreeWalk, case: Case, index: int) -> None:
        self._case, classes, vector = case, walk._classes, walk._vectors[index]
        there = [k for k, n in enumerate(case.left) if n]
        self._name = {k: i for i, k in enumerate(there)}
        kinds = [(classes.sizes[k], case.left[k]) for k in there]
        self._lightest = {
            c: extreme_total(kinds, c, largest=False) for c in range(1 + max(dict(case.workers.values()), default=0))
        }
        self.spare = -1
        self.waiting = 0
        copies, free = sum(n for _, n in kinds), sum(c for c, _ in case.workers.values())
        forced = sum(case.left[k] for k in there if classes.forced[k])
        if not forced <= free <= copies or any(room < self._lightest[c] for c, room in case.workers.values()):
            return
        reach: dict[int, int] = {}
        for slots, room in case.workers.values():
            for c in (slots, slots - 1):
                if c:
                    reach[c] = max(reach.get(c, 0), room)
        left = SizeClasses(
            tuple(size for size, _ in kinds), tuple(classes.forced[k] for k in there), tuple(n for _, n in kinds)
        )
        self._table = BestProfits(left, [vector.get(k, 0) for k in there], walk._scale, reach)
        fixed = walk._scale * (case.placed - walk._needed)
        fixed += sum(n * price for n, price in zip(left.counts, self._table.prices, strict=True))
        self._places = {g: (c, self._table.clipped(c, room)) for g, (c, room) in case.workers.items()}
        self._best, self.spare = refined(
            self._table, self._places, best_profits(self._table, set(self._places.values())), fixed
        )
        may_wait = [
            (price, n) for price, n, must in zip(self._table.prices, left.counts, left.forced, strict=True) if not must
        ]
        self.waiting = extreme_total(may_wait, copies - free, largest=False)

    def patterns(self, g: int) -> Iterator[tuple[Pattern, int]]:
        """Yield the patterns of worker g that lose no more than may be lost, and what they lose."""
        place, there = self._places[g], list(self._name)
        found = Patterns(self._table, *place, self._best[place] - self.spare, _PATIENCE)
        number = 0
        while (one := found[number]) is not None:
            if all(copies <= self._table.classes.counts[k] for k, copies in one.needs):
                yield tuple(there[k] for k in one.pattern), self._best[place] - one.profit
            number += 1

    def lost_waiting(self, k: int) -> int:
        """Return what is lost at least where all that is left of class k waits."""
        return self._case.left[k] * self._table.prices[self._name[k]] if k in self._name else 0

    def lost_placing(self, k: int) -> dict[int, int]:
        """Return {worker: what is lost at least} where it takes a request of class k, for those that can."""
        if k not in self._name:
            return {}
        i, table = self._name[k], self._table
        size, profit = table.classes.sizes[i], table.own[i]
        lost: dict[int, int] = {}
        for slots in {slots for slots, _ in self._case.workers.values()}:
            workers = [
                g
                for g, (c, room) in self._case.workers.items()
                if c == slots and room - size >= self._lightest[slots - 1]
            ]
            rooms = [self._case.workers[g][1] - size for g in workers]
            if slots > 1:
                rooms = [table.clipped(slots - 1, room) for room in rooms]
                rest = table.upper(slots - 1, np.array(rooms, dtype=table.kind)).tolist()
            else:
                rest = [0] * len(rooms)
            lost |= {g: self._best[self._places[g]] - profit - more for g, more in zip(workers, rest, strict=True)}
        return lost
