"""Walk a tree of decisions: every way to go on is either a child or impossible, and every leaf is dead.

Let B_g be the best profit of worker g (or a number above it; the same one everywhere), D = sum of all B_g and of
n_k * price_k over the classes. For an assignment that admits T tokens with all loads within the envelope, the loss
B_g - profit of the pattern of g is at least 0, and

    sum of all losses + sum over the classes of price_k * (copies of k that wait) = D - scale * T.

The second sum is at least 0 (forced classes cannot wait, all other prices are at least 0), so an assignment with
T >= needed loses at most budget = D - scale * needed. A branch on worker g is complete if every pattern of g that can
be filled with the copies that the branches above have left, and that loses at most what they have left of the budget,
is among its children. Children that lose too much or lack copies are harmless: nothing below them is asked for.

A leaf is dead if more forced copies are left than the undecided workers have slots, or if the least losses of some
undecided workers, each with the copies left, and the price of what will wait add up to more than the budget left. How
many copies will wait is known, (those left) - (undecided slots), none of them forced; they cost at least as much as
that many of the cheapest. Where every worker is decided, this is the whole truth about one assignment, so a tree exists
for every true bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates.pattern_list import PatternList
from lbopt.solvers.certificates.patterns import Found, Patterns
from lbopt.solvers.certificates.priced_body import Branch, Dead, Pattern, Tree
from lbopt.solvers.certificates.profits import BestProfits
from lbopt.solvers.certificates.step import extreme_total

#: Partial patterns that may be kept for one worker of one tree: a few hundred megabytes.
_PATIENCE = 1_000_000

#: The budget of a part of the tree that no assignment reaches.
_IMPOSSIBLE = -1


@dataclass(slots=True)
class _Level:
    """A branch on the way down: its worker, its children, the next of them, the budget before any was chosen."""

    worker: int
    patterns: tuple[Pattern, ...]
    budget: int
    following: int = 0
    taken: list[tuple[int, int]] = field(default_factory=list)  # copies that the present child uses


class TreeWalk:
    """The check of one tree.

    Parameters
    ----------
    table
        Profits under the prices of the node.
    workers
        {worker: (free slots, room)} of all open workers.
    best
        {worker: B_g}.
    budget
        What an assignment may lose, at the root; not negative.
    """

    def __init__(
        self, table: BestProfits, workers: dict[int, tuple[int, int]], best: dict[int, int], budget: int
    ) -> None:
        self._table, self._workers, self._best, self._budget = table, workers, best, budget
        # Copies of each class that are left, exactly and as an array; no pattern can tell 2**62 of them from more.
        self._left = list(table.classes.counts)
        self._left_array = np.array([min(n, 2**62) for n in self._left], dtype=np.int64)
        self._lists: dict[tuple[int, int], PatternList] = {}

    def check(self, tree: Tree) -> None:
        """Return if the tree proves that nothing fits into the budget.

        Raises
        ------
        CertificateError
            Naming the record that does not hold.
        """
        path: list[_Level] = []
        decided: set[int] = set()
        budget = self._budget
        for number, record in enumerate(tree):
            spend(20)
            if number and not path:
                raise CertificateError(f"the tree is complete after {number} records, but it has {len(tree)}")
            if isinstance(record, Dead):
                self._check_dead(record, decided, budget, number)
            elif isinstance(record, Branch):
                self._check_branch(record, decided, budget, number)
                decided.add(record.worker)
                path.append(_Level(record.worker, record.patterns, budget))
            else:
                raise CertificateError(f"record {number} of a tree of patterns decides on a single request")
            budget = self._descend(path, decided)
        if path or not tree:
            missing = f"a child of the branch on worker {path[-1].worker}" if path else "its root"
            raise CertificateError(f"the tree ends after {len(tree)} records, before {missing}")

    def _descend(self, path: list[_Level], decided: set[int]) -> int:
        """Leave the present child, go up past finished branches and enter the next child; return its budget."""
        while path:
            level = path[-1]
            self._take(level.taken, -1)
            level.taken = []
            if level.following < len(level.patterns):
                pattern = level.patterns[level.following]
                level.following += 1
                return self._enter(level, pattern)
            decided.discard(level.worker)
            path.pop()
        return _IMPOSSIBLE

    def _enter(self, level: _Level, pattern: Pattern) -> int:
        """Take the copies of a child and return the budget below it."""
        room = self._workers[level.worker][1]
        taken = [(k, pattern.count(k)) for k in set(pattern)]
        fits = sum(self._table.classes.sizes[k] for k in pattern) <= room
        if not fits or any(self._left[k] < copies for k, copies in taken):
            return _IMPOSSIBLE
        self._take(taken, 1)
        level.taken = taken
        profit = sum(self._table.own[k] for k in pattern)
        return level.budget - (self._best[level.worker] - profit)

    # ------------------------------------------------------------------ records

    def _check_dead(self, leaf: Dead, decided: set[int], budget: int, number: int) -> None:
        if len(set(leaf.workers)) < len(leaf.workers):
            raise CertificateError(f"record {number} of the tree names a worker twice: {list(leaf.workers[:8])}")
        for g in leaf.workers:
            self._demand_undecided(g, decided, number)
        if budget < 0:
            return
        lost = 0
        for g in leaf.workers:
            least = next(self._available(g, budget - lost), None)
            if least is None:
                return
            lost += self._best[g] - least.profit
        waiting = self._waiting_price(decided)
        if waiting is not None and lost + waiting <= budget:
            raise CertificateError(
                f"record {number} of the tree calls workers {list(leaf.workers[:8])} dead, but together they may lose "
                f"as little as {lost}, requests may wait at a price of {waiting}, and the budget left is {budget}"
            )

    def _waiting_price(self, decided: set[int]) -> int | None:
        """Return the least price of what waits in the end; None if not all forced copies can be admitted."""
        undecided = sum(slots for g, (slots, _) in self._workers.items() if g not in decided)
        classes = list(zip(self._table.classes.forced, self._table.prices, self._left, strict=True))
        free = undecided - sum(left for forced, _, left in classes if forced)
        if free < 0:
            return None
        may_wait = [(price, left) for forced, price, left in classes if not forced]
        return extreme_total(may_wait, sum(left for _, left in may_wait) - free, largest=False)

    def _check_branch(self, branch: Branch, decided: set[int], budget: int, number: int) -> None:
        g = branch.worker
        self._demand_undecided(g, decided, number)
        slots = self._workers[g][0]
        for pattern in branch.patterns:
            if len(pattern) != slots or (pattern and pattern[0] >= len(self._left)):
                raise CertificateError(
                    f"record {number} of the tree: {list(pattern[:8])} is no pattern of worker {g}, which takes "
                    f"{slots} requests of the classes 0..{len(self._left) - 1}"
                )
        children = set(branch.patterns)
        for found in self._available(g, budget):
            if found.pattern not in children:
                raise CertificateError(
                    f"record {number} of the tree: pattern {list(found.pattern[:8])} of worker {g} is missing; it "
                    f"loses {self._best[g] - found.profit} of the budget {budget} that is left"
                )

    def _demand_undecided(self, g: int, decided: set[int], number: int) -> None:
        if g not in self._workers:
            raise CertificateError(f"record {number} of the tree names worker {g}, which has no free slots here")
        if g in decided:
            raise CertificateError(f"record {number} of the tree names worker {g}, which is decided already")

    # ------------------------------------------------------------------ patterns

    def _available(self, g: int, budget: int) -> Iterator[Found]:
        """Yield the patterns of worker g that lose at most `budget` and can be filled, those that lose least first."""
        if budget < 0:
            return
        place = self._workers[g]
        if place not in self._lists:
            least = self._best[g] - self._budget
            self._lists[place] = PatternList(Patterns(self._table, *place, least, _PATIENCE), place[0])
        yield from self._lists[place].available(self._left_array, self._best[g] - budget)

    def _take(self, taken: list[tuple[int, int]], sign: int) -> None:
        """Take copies of classes away (sign 1) or put them back (sign -1)."""
        for k, copies in taken:
            self._left[k] -= sign * copies
            self._left_array[k] -= sign * copies
