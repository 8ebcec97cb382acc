"""The most profit of a choice of q requests within several limits, in Python's integers, and all that has enough of it.

A choice is bounded first by what a linear relaxation with a multiplier for each limit says, which is cheap and mostly
enough; a depth-first search along the profits that the multipliers leave settles it exactly. Of several workers each is
bounded first; where the sum does not suffice they are settled, one after the other, until it does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend

#: Steps that the exact search of all choices of one evaluation may take: some seconds.
_STEPS = 4_000_000


#: A step of a search for more requests than this counts as several: what they may bring is summed request by request.
_RESTS = 64

#: What a search has taken: the last class, behind those before; it shares them with the searches beside it.
_Taken = tuple[Any, int] | None

#: Requests and ways up to which a choice is searched at once.
_FEW = 3, 24


class TooLongError(CertificateError):
    """The check would take too long; whether the bound holds stays open."""


class Way(NamedTuple):
    """A class that may be chosen: the profit of one, what it takes of each limit, how often, and its number."""

    profit: int
    takes: tuple[int, ...]
    times: int
    kind: int


class Task(NamedTuple):
    """What is left to choose: a profit of its own, how many, limits, and the ways."""

    own: int
    q: int
    limits: tuple[int, ...]
    ways: list[Way]


def rough(tasks: Sequence[Task]) -> int | None:
    """Return what the profit of none of these tasks exceeds, by the relaxation; None where none is possible."""
    return max((choice.rough for choice in (Choice(*task) for task in tasks) if choice.possible), default=None)


def most(workers: Sequence[Sequence[Task]], fixed: int, limit: int) -> int | None:
    """Return a bound on `fixed` and the profits of all workers, each with one of its tasks; None where one has none.

    Parameters
    ----------
    limit
        A bound that is below it need not be exact.

    Raises
    ------
    TooLongError
        Where the search for exact profits takes too long.
    """
    total, problems = fixed, []
    for tasks in workers:
        choices = [choice for choice in (Choice(*task) for task in tasks) if choice.possible]
        if not choices:
            return None
        choices.sort(key=lambda one: -one.rough)
        total += choices[0].rough
        problems.append(choices)
    steps = [_STEPS]
    for choices in problems:
        if total < limit:
            return total
        # Where no choice has more profit than this, the bound suffices whatever the best one is.
        exact = choices[0].rough - (total - limit + 1)
        for choice in choices:
            found = choice.best(exact, steps) if choice.rough > exact else None
            exact = exact if found is None else found
        total -= choices[0].rough - exact
    return total


class Choice:
    """The choice of q requests within some limits, on top of a profit of its own."""

    def __init__(self, own: int, q: int, limits: tuple[int, ...], ways: list[Way]) -> None:
        self.own, self.q, self.limits, self.ways = own, q, limits, ways
        self.multipliers = [0] * len(limits)
        self.columns = list(zip(*(way.takes for way in ways), strict=True))
        #: Whether some choice fits: enough requests are left, and the lightest of them keep each limit.
        self.possible = sum(way.times for way in ways) >= q and all(
            self._lightest(r) <= limit for r, limit in enumerate(limits)
        )
        #: Whether the search is as quick as the relaxation, so that `rough` is the most profit itself.
        self.quick = q <= 1 or (q <= _FEW[0] and len(ways) <= _FEW[1])
        #: No choice has more profit.
        self.rough = 0
        if self.possible and self.quick:
            found = [profit for profit, _ in self.sets(None, [_STEPS], rising=True)] if q else [own]
            self.possible, self.rough = bool(found), found[-1] if found else 0
        elif self.possible:
            self.rough = own + self._rough()

    def _lightest(self, r: int) -> int:
        total, rest = 0, self.q
        for place in sorted(range(len(self.ways)), key=self.columns[r].__getitem__) if self.ways else ():
            taken = min(rest, self.ways[place].times)
            total, rest = total + taken * self.columns[r][place], rest - taken
            if rest == 0:
                break
        return total

    def _reduced(self) -> list[int]:
        """Return the profit of each way less what the multipliers ask for it."""
        reduced = [way.profit for way in self.ways]
        for a, column in zip(self.multipliers, self.columns, strict=False):
            if a:
                reduced = [worth - a * weight for worth, weight in zip(reduced, column, strict=True)]
        return reduced

    def _at(self) -> tuple[int, list[int]]:
        """Return the bound of the relaxation at the multipliers, and what its choice takes of each limit."""
        bound, rest = sum(a * limit for a, limit in zip(self.multipliers, self.limits, strict=True)), self.q
        usage, reduced = [0] * len(self.limits), self._reduced()
        for place in sorted(range(len(reduced)), key=reduced.__getitem__, reverse=True):
            way = self.ways[place]
            taken = min(rest, way.times)
            bound += taken * reduced[place]
            for r, weight in enumerate(way.takes):
                usage[r] += taken * weight
            rest -= taken
            if rest == 0:
                break
        return bound, usage

    def _rough(self) -> int:
        """Return the least bound along multipliers that are raised by bisection, one limit after the other."""
        multipliers = self.multipliers
        least, usage = self._at()
        for _ in range(2 * len(self.limits)):
            over = [r for r, limit in enumerate(self.limits) if usage[r] > limit]
            if not over:
                break
            r = max(over, key=lambda r: usage[r] / (self.limits[r] + 1))
            below, above = multipliers[r], max(1024, 2 * multipliers[r])
            while above < 1 << 50:
                multipliers[r] = above
                bound, usage = self._at()
                least = min(least, bound)
                if usage[r] <= self.limits[r]:
                    break
                below, above = above, 4 * above
            while above - below > 1 + above // 512:
                multipliers[r] = (above + below) // 2
                bound, usage = self._at()
                least = min(least, bound)
                if usage[r] <= self.limits[r]:
                    above = multipliers[r]
                else:
                    below = multipliers[r]
            multipliers[r] = above
            _, usage = self._at()
        return least

    def best(self, known: int | None, steps: list[int]) -> int | None:
        """Return the most profit, `known` if nothing exceeds it, None where nothing fits and nothing is known.

        Parameters
        ----------
        known
            Profit of another choice; None for none.
        steps
            What is left of the steps of an evaluation, in one place.
        """
        if self.quick:
            return self.rough if known is None else max(known, self.rough)
        for profit, _ in self.sets(None if known is None else known + 1, steps, rising=True):
            known = profit
        return known

    def sets(self, least: int | None, steps: list[int], *, rising: bool) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the sets of at least this profit, as profit and classes in descending order.

        Parameters
        ----------
        least
            None for any profit.
        steps
            What is left of the steps, in one place.
        rising
            Whether each one has to bring more than the one before.

        Raises
        ------
        TooLongError
            Where the steps do not suffice.
        """
        pairs = zip(self._reduced(), self.ways, strict=True)
        rows = sorted(pairs, key=lambda one: (-one[0], one[1].takes))
        lightest = [min(column) for column in self.columns]
        by_work = sorted((way.takes[0], way.profit) for way in self.ways)
        works, tops = list(map(itemgetter(0), by_work)), list(accumulate(map(itemgetter(1), by_work), max))
        floor = None if least is None else least - self.own
        hope = sum(a * limit for a, limit in zip(self.multipliers, self.limits, strict=True))
        stack: list[tuple[int, int, int, int, int, tuple[int, ...], _Taken]]
        stack = [(0, 0, 0, hope, self.q, self.limits, None)]
        looks = 0
        while stack:
            c, repeated, value, hope, rest, rooms, taken = stack.pop()
            steps[0] -= 1 + rest // _RESTS
            looks += 1
            if looks % 1_000 == 0:
                spend(2_000)
            if steps[0] < 0:
                raise TooLongError("the patterns of its workers take too long to be checked")
            if c >= len(rows) or (floor is not None and hope + rest * rows[c][0] < floor):
                continue
            # The case without any more of this class is looked at later, that with one more first.
            stack.append((c + 1, 0, value, hope, rest, rooms, taken))
            reduced, way = rows[c]
            after = tuple(room - weight for room, weight in zip(rooms, way.takes, strict=True))
            ahead, now, chosen = rest - 1, value + way.profit, (taken, way.kind)
            if repeated >= way.times or any(a < ahead * light for a, light in zip(after, lightest, strict=True)):
                continue
            if ahead == 0:
                if floor is None or now >= floor:
                    floor = now + 1 if rising else floor
                    yield self.own + now, _listed(chosen)
                continue
            if floor is not None:
                most = now
                for i in range(1, ahead + 1):
                    place = bisect_right(works, after[0] // i) - 1
                    most += tops[place] if place >= 0 else 0
                if most < floor:
                    continue
            stack.append((c, repeated + 1, now, hope + reduced, ahead, after, chosen))


def _listed(taken: _Taken) -> tuple[int, ...]:
    """Return the classes taken, in descending order."""
    kinds = []
    while taken is not None:
        taken, kind = taken
        kinds.append(kind)
    return tuple(sorted(kinds, reverse=True))
