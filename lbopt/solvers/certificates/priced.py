"""Check a certificate of the kind "priced-envelopes": prices that no assignment cheaper than the bound can beat.

Horizon 0. The envelope M of an assignment is its largest load, and its cost is G * M - (sum of all loads before) - T,
where T is the admitted total. Where fewer requests wait than slots are free, requests of size zero fill up the
difference, so that every slot is filled by exactly one request. Fix prices per class: at least 0, but of any sign for
forced classes, all copies of which are admitted. A pattern of worker g at M is a multiset of slots_g requests of total
size at most M - load_g; its profit is scale * size - price, summed. With B_g(M) the largest profit of a pattern of g,

    scale * T <= D(M) = sum_k n_k price_k + sum_g B_g(M)        for every assignment with all loads <= M,

because scale * T = (sum of the profits of its patterns) + (sum of price_k * copies admitted), where waiting copies have
a price of at least 0. It holds as well with any number >= B_g(M) in its place. A worker without any pattern at M says
that no assignment has all its loads <= M.

Now let an assignment cost less than C and have its envelope in a..b. All its loads are <= b, and it admits at least
needed = G a - (sum of loads) - (largest possible cost below C) tokens, and at least what the smallest requests that
can be admitted have, for every slot is filled: all of them, where none waits. So D(b) < scale * needed refutes the
range; otherwise the tree does (`tree.py`). The ranges have to cover every envelope from the least one that any
assignment has to the last one at which a cost below C is conceivable. No range is checked at more than its two ends:
patterns that fit at M <= b fit at b.

Costs and loads are counted in steps of `unit`, a common divisor of all sizes and differences of loads: a cost below C
is then at most the last multiple below C, and envelopes between two steps do not occur.

In a tree a case is refuted where a worker has no patterns left, or where D less the least price of the requests that
wait is below scale * needed: how many wait is known (copies left less slots left, none of them forced), and they cost
at least what that many of the cheapest do. A placement of class k under prices splits a case: all copies of k that are
left wait, or worker g takes one, for some g. Together these cover the case (they may overlap). By the same inequality a
way needs no subtree where

    g takes one:   D - B_g + (profit of k) + (best profit of one slot fewer in a room that is smaller by v_k)
    all wait:      D - (copies left of k) * price_k

is below scale * needed; all other ways have to be among the children. Forced copies cannot wait. A branch splits a case
by the whole pattern of worker g, and every pattern that loses at most D - scale * needed has to be among its children.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates.choice import Choice, TooLongError, Way
from lbopt.solvers.certificates.format import (
    Branch,
    Node,
    Pattern,
    Placement,
    PricedBody,
    Prices,
    Record,
    Refuted,
    check_prices,
    read_priced_body,
    refuse_many_slots,
)
from lbopt.solvers.certificates.profits import BestProfits, SizeClasses, extreme_total
from lbopt.solvers.certificates.tree import Case, Place, check_goal, walk
from lbopt.solvers.recount import Numbers

#: Steps of the search for the best profit of a worker where the table knows it only from above.
_STEPS = 20_000

#: A case that does not exist: no worker, so that none takes anything.
_IMPOSSIBLE = Case((), {})

#: Steps of the search for all patterns of a worker that a branch may have to name.
_LISTED = 1_000_000


def check_priced(p: Numbers, bound: int, body: dict[str, Any]) -> None:
    """Return if the evidence proves that no assignment costs less than `bound`.

    Raises
    ------
    CertificateError
        Naming a node, and the numbers, for which it does not.
    """
    horizon = len(p.base[0]) - 1
    if horizon:
        raise CertificateError(f"kind 'priced-envelopes' proves bounds at horizon 0, and the problem has {horizon}")
    evidence = read_priced_body(body)
    goal = PricedGoal(p, bound, evidence)
    check_prices(evidence.prices, goal.classes.forced)
    if bound > 0:
        check_goal(goal, evidence.nodes)


class PricedGoal:
    """No assignment of a plain problem costs less than the bound."""

    def __init__(self, p: Numbers, bound: int, evidence: PricedBody) -> None:
        self.evidence, self.slots, self.loads = evidence, p.slots, [row[0] for row in p.base]
        sizes = [row[0] for row in p.work]
        numbers = Counter(zip(sizes, map(bool, p.must), strict=True))
        admitted = sum(p.slots)
        if len(sizes) < admitted:
            numbers[0, False] += admitted - len(sizes)
        order = sorted(numbers)
        self.classes = SizeClasses(
            tuple(size for size, _ in order), tuple(must for _, must in order), tuple(numbers[key] for key in order)
        )
        every = [(size, numbers[size, must]) for size, must in order]
        lightest = {c: extreme_total(every, c, largest=False) for c in set(p.slots)}
        free = [(size, n) for (size, must), n in numbers.items() if not must]
        left = sum(n for _, n in free) - (sum(numbers.values()) - admitted)
        forced = sum(size * n for (size, must), n in numbers.items() if must)
        self.least = forced + extreme_total(free, left, largest=False)
        self.unit = math.gcd(*sizes, *(load - self.loads[0] for load in self.loads)) or 1
        self.first = max(load + lightest[c] for load, c in zip(self.loads, p.slots, strict=True))
        #: G M - T is at most this.
        self.most = (bound - 1) // self.unit * self.unit + sum(self.loads)
        self.last = (self.most + forced + extreme_total(free, left, largest=True)) // len(self.loads)
        self._tables: dict[int, BestProfits] = {}

    def refute(self, first: int, last: int, node: Node) -> None:
        """Return if no cheaper assignment has an envelope in this range, by what the node says."""
        needed = max(self.least, len(self.loads) * first - self.most)
        tree = TreeCheck(self.classes, self.evidence.scale, self.evidence.prices, needed)
        places = enumerate(zip(self.slots, self.loads, strict=True))
        root = Case(self.classes.counts, {g: Place(c, (last - load,)) for g, (c, load) in places if c})
        view = tree.view(root, node.prices, self._tables)
        if view.spare < 0:
            return
        if node.tree is None:
            raise CertificateError(
                f"a cheaper assignment would admit {needed} tokens or more, and by prices {node.prices} up to "
                f"{needed + view.spare // tree.scale} are possible"
            )
        refuse_many_slots(self.slots)
        walk(node.tree, tree.below, root)


@dataclass(frozen=True, slots=True)
class TreeCheck:
    """The check of the records of one tree: no case admits what is needed.

    Parameters
    ----------
    classes, scale
        The size classes, and units of price per token.
    vectors
        The price vectors, {class: price}.
    needed
        What an assignment admits at least, if it is to be cheaper than the bound.
    """

    classes: SizeClasses
    scale: int
    vectors: Sequence[Prices]
    needed: int

    def below(self, case: Case, record: Record) -> list[Case]:
        """Check a record and return the cases below it; under an impossible one everything holds."""
        if isinstance(record, Refuted):
            if case is not _IMPOSSIBLE:
                self._check_refuted(case, record)
            return []
        if isinstance(record, Placement):
            return self._placed(case, record)
        assert isinstance(record, Branch), "no other record is read"
        return self._decided(case, record)

    def view(self, case: Case, index: int, tables: dict[int, BestProfits] | None = None) -> View:
        """Return what prices say about a case; `tables` keeps those of the whole problem, the largest rooms first."""
        workers = case.workers.values()
        there = [k for k, n in enumerate(case.left) if n]
        left = SizeClasses(
            tuple(self.classes.sizes[k] for k in there),
            tuple(self.classes.forced[k] for k in there),
            tuple(case.left[k] for k in there),
        )
        kinds = list(zip(left.sizes, left.counts, strict=True))
        lightest = {c: extreme_total(kinds, c, largest=False) for c in {place.slots for place in workers}}
        view = View(case, there)
        copies, free = sum(left.counts), sum(place.slots for place in workers)
        forced = sum(n for n, must in zip(left.counts, left.forced, strict=True) if must)
        if not forced <= free <= copies or any(place.rooms[0] < lightest[place.slots] for place in workers):
            return view
        table = None if tables is None else tables.get(index)
        if table is None:
            reach: dict[int, int] = {}
            for place in workers:
                for c in range(max(1, place.slots - 1), place.slots + 1):
                    reach[c] = max(reach.get(c, 0), place.rooms[0])
            prices = [self.vectors[index].get(k, 0) for k in there]
            table = BestProfits(left, prices, self.scale, reach)
            if tables is not None:
                tables[index] = table
        fixed = self.scale * (case.placed - self.needed)
        view.weigh(table, fixed + sum(n * price for n, price in zip(left.counts, table.prices, strict=True)))
        return view

    def _check_refuted(self, case: Case, record: Refuted) -> None:
        view = self.view(case, record.prices)
        if view.spare >= 0 and (more := view.spare - view.waiting()) >= 0:
            raise CertificateError(
                f"it calls a case refuted, but by prices {record.prices} up to {self.needed + more // self.scale} "
                f"tokens are possible, and {self.needed} are needed"
            )

    def _with_one(self, case: Case, g: int, k: int) -> Case:
        """Return the case in which worker g takes one request of class k, the impossible one where it cannot."""
        size = self.classes.sizes[k]
        if g not in case.workers or not case.left[k]:
            return _IMPOSSIBLE
        place = case.workers[g]
        return case.with_one(g, k, (size,), size) if place.slots and place.rooms[0] >= size else _IMPOSSIBLE

    def _decided(self, case: Case, record: Branch) -> list[Case]:
        """Return the cases below a branch, whose patterns have to be all that worker g may take."""
        g, children = record.worker, record.patterns
        if case is _IMPOSSIBLE:
            return [_IMPOSSIBLE] * len(children)
        slots, kinds = case.workers[g].slots if g in case.workers else 0, len(self.classes)
        if not slots:
            raise CertificateError(f"it names worker {g}, which has no free slots here")
        for pattern in children:
            if len(pattern) != slots or pattern[0] >= kinds:
                raise CertificateError(
                    f"{list(pattern[:8])} is no pattern of worker {g}, which takes {slots} requests of the classes "
                    f"0..{kinds - 1}"
                )
        view = self.view(case, record.prices)
        for pattern, lost in view.patterns(g) if view.spare >= 0 else ():
            if pattern not in children:
                raise CertificateError(
                    f"pattern {list(pattern[:8])} of worker {g} is missing; it loses {lost} of the {view.spare} that "
                    "may be lost"
                )
        cases = []
        for pattern in children:
            taken = case
            for k in pattern:
                taken = self._with_one(taken, g, k)
            cases.append(taken)
        return cases

    def _placed(self, case: Case, record: Placement) -> list[Case]:
        k, workers = record.kind, record.workers
        if k >= len(self.classes):
            raise CertificateError(f"it places class {k}, but there are only {len(self.classes)} classes")
        if len(set(workers)) < len(workers):
            raise CertificateError(f"it names a worker twice: {list(workers[:8])}")
        if case is _IMPOSSIBLE:
            return [_IMPOSSIBLE] * (len(workers) + record.waits)
        view = self.view(case, record.prices)
        if view.spare >= 0:
            if not record.waits and not self.classes.forced[k] and view.lost_waiting(k) <= view.spare:
                raise CertificateError(
                    f"it leaves out that all of class {k} waits, which loses {view.lost_waiting(k)} of the "
                    f"{view.spare} that may be lost"
                )
            named = set(workers)
            for g, lost in view.lost_placing(k):
                if g not in named and lost <= view.spare:
                    raise CertificateError(
                        f"it leaves out that worker {g} takes a request of class {k}, which loses {lost} of the "
                        f"{view.spare} that may be lost"
                    )
        waiting = case.without(k) if not self.classes.forced[k] or not case.left[k] else _IMPOSSIBLE
        return ([waiting] if record.waits else []) + [self._with_one(case, g, k) for g in workers]


@dataclass(slots=True)
class View:
    """What prices say about a case.

    Parameters
    ----------
    case, there
        The case, and the classes that are left in it.
    spare
        D - scale * needed, -1 where nothing is possible at all.
    """

    case: Case
    there: list[int]
    spare: int = -1
    table: BestProfits = field(init=False)
    best: dict[tuple[int, int], int] = field(default_factory=dict)

    def weigh(self, table: BestProfits, fixed: int) -> None:
        """Find the best profits, and spare: their sum and `fixed`; where that is not negative, as low as can be."""
        self.table = table
        places = Counter(map(self._place, self.case.workers))
        for slots in {slots for slots, _ in places}:
            rooms = [room for c, room in places if c == slots]
            self.best.update(zip(((slots, room) for room in rooms), table.upper(slots, rooms), strict=True))
        self.spare = fixed + sum(number * self.best[place] for place, number in places.items())
        for steps in (0, _STEPS, 10 * _STEPS):  # the most where all else leaves something open
            for place, number in places.items():
                if self.spare < 0 or table.exact:
                    return
                choice, above = self._choice(*place), self.best[place]
                found: int | None = choice.rough
                if steps:
                    with suppress(TooLongError):
                        found = choice.best(None, [steps])
                if found is not None and found < above:
                    self.best[place] = found
                    self.spare -= number * (above - found)

    def _place(self, g: int) -> tuple[int, int]:
        """Return slots and room of a worker, the latter no larger than matters."""
        place = self.case.workers[g]
        return place.slots, self.table.clipped(place.slots, place.rooms[0])

    def _choice(self, slots: int, room: int) -> Choice:
        classes, own = self.table.classes, self.table.own
        triples = enumerate(zip(own, classes.sizes, classes.counts, strict=True))
        ways = [Way(profit, (size,), min(slots, n), i) for i, (profit, size, n) in triples if size <= room]
        return Choice(0, slots, (room,), ways)

    def patterns(self, g: int) -> Iterator[tuple[Pattern, int]]:
        """Yield the patterns of worker g that lose no more than may be lost, and what they lose."""
        place = self._place(g)
        best = self.best[place]
        for profit, pattern in self._choice(*place).sets(best - self.spare, [_LISTED], rising=False):
            yield tuple(self.there[i] for i in pattern), best - profit

    def waiting(self) -> int:
        """Return what the requests that wait cost at least."""
        classes, places = self.table.classes, self.case.workers.values()
        prices = zip(self.table.prices, classes.counts, classes.forced, strict=True)
        waiting = sum(classes.counts) - sum(place.slots for place in places)
        return extreme_total([(price, n) for price, n, must in prices if not must], waiting, largest=False)

    def lost_waiting(self, k: int) -> int:
        """Return what is lost at least where all that is left of class k waits."""
        return self.case.left[k] * self.table.prices[self.there.index(k)] if k in self.there else 0

    def lost_placing(self, k: int) -> Iterator[tuple[int, int]]:
        """Yield worker and what is lost at least where it takes a request of class k, for those that can."""
        if k not in self.there:
            return
        i, table = self.there.index(k), self.table
        size, kinds = table.classes.sizes[i], list(zip(table.classes.sizes, table.classes.counts, strict=True))
        rooms = {g: place.rooms[0] - size for g, place in self.case.workers.items()}
        for slots in {place.slots for place in self.case.workers.values() if place.slots}:
            alike = [g for g, place in self.case.workers.items() if place.slots == slots]
            lightest = extreme_total(kinds, slots - 1, largest=False)
            able = [g for g in alike if rooms[g] >= lightest]
            rest = table.upper(slots - 1, [table.clipped(slots - 1, rooms[g]) for g in able])
            for g, more in zip(able, rest, strict=True):
                yield g, self.best[self._place(g)] - table.own[i] - more
