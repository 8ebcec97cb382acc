"""The checker's own pricing under conditions: the most profit of a worker's pattern, in Python's integers.

Each worker is bounded first by what a linear relaxation with two multipliers says, which is cheap and mostly enough.
Where the sum of these does not refute what has to be refuted, the workers are settled exactly, one after the other, by
a depth-first search, until it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend

#: Steps that the exact search of all patterns of one evaluation may take: some seconds.
_STEPS = 4_000_000


class TooLongError(CertificateError):
    """The check would take too long; whether the bound holds stays open."""


@dataclass(slots=True)
class Offer:
    """What one worker can take, and what it has taken on the path of a tree.

    Parameters
    ----------
    worker, slots
        Its number, and how many requests it takes, blanks among them.
    margin, rooms
        Work that fits; what is free of each resource.
    classes, value, work, needs
        Classes that it may take, the blank last; what one is worth, its work, what it takes of each resource.
    modes
        What pauses take off the load, and what they are worth.
    placed, banned
        Places in `classes` of what it has taken; classes of which it takes no more.
    """

    worker: int
    slots: int
    margin: int
    rooms: list[int]
    classes: list[int]
    value: list[int]
    work: list[int]
    needs: list[list[int]]
    modes: list[tuple[int, int]]
    placed: list[int] = field(default_factory=list)
    banned: set[int] = field(default_factory=set)


class Patterns:
    """All workers at one envelope, along the path of a tree."""

    def __init__(self, offers: list[Offer], copies: list[int], scale: int) -> None:
        self.offers, self.copies, self.left, self.scale = offers, copies, list(copies), scale

    def open_to(self, k: int, g: int) -> bool:
        """Return whether one more of class k can be placed on worker g."""
        if g >= len(self.offers) or k >= len(self.copies) or self.left[k] <= 0:
            return False
        offer = self.offers[g]
        return k in offer.classes and k not in offer.banned and len(offer.placed) < offer.slots

    def change(self, step: str, k: int, g: int) -> None:
        """Go one step along the path: "place", "lift", "ban" or "unban"."""
        offer = self.offers[g]
        if step == "place":
            offer.placed.append(offer.classes.index(k))
            self.left[k] -= 1
        elif step == "lift":
            offer.placed.pop()
            self.left[k] += 1
        elif step == "ban":
            offer.banned.add(k)
        else:
            offer.banned.discard(k)

    def bound(self, prices: list[int], enough: int) -> int | None:
        """Return a bound on scale * value at these prices; None where some worker has no pattern at all.

        Parameters
        ----------
        enough
            A value; a bound that does not exceed it need not be exact.
        """
        spend(100)
        total = sum(n * price for n, price in zip(self.copies, prices, strict=True))
        problems = []
        for offer in self.offers:
            cases = [case for mode in offer.modes if (case := self._case(offer, mode, prices)) is not None]
            if not cases:
                return None
            rough = max(case.rough for case in cases)
            total += rough
            problems.append((rough, cases))
        steps = [_STEPS]
        for rough, cases in problems:
            if total // self.scale <= enough:
                return total
            # Where no pattern has more profit than this, the bound suffices whatever the best one is.
            exact: int | None = rough - (total - (enough + 1) * self.scale + 1)
            for case in sorted(cases, key=lambda one: -one.rough):
                if exact is None or case.rough > exact:
                    found = case.best(exact, steps)
                    exact = found if exact is None or (found is not None and found > exact) else exact
            assert exact is not None, "it begins with a number"
            total -= rough - exact
        return total

    def rough(self, offer: Offer, prices: list[int]) -> int | None:
        """Return what no profit of a worker exceeds, by the relaxation; None where it has no pattern."""
        cases = [case for mode in offer.modes if (case := self._case(offer, mode, prices)) is not None]
        return max((case.rough for case in cases), default=None)

    def best(self, offer: Offer, prices: list[int]) -> int | None:
        """Return the most profit of a worker, None where it has no pattern; raise `TooLongError` where that is long."""
        cases = [case for mode in offer.modes if (case := self._case(offer, mode, prices)) is not None]
        exact, steps = None, [_STEPS // 100]
        for case in sorted(cases, key=lambda one: -one.rough):
            if exact is None or case.rough > exact:
                exact = case.best(exact, steps)
        return exact

    def _case(self, offer: Offer, mode: tuple[int, int], prices: list[int]) -> _Case | None:
        """Return what is left to choose for a worker in one mode; None where what is placed does not fit."""
        limits = [offer.margin + mode[0], *offer.rooms]
        own = mode[1] * self.scale
        for place in offer.placed:
            own += offer.value[place] * self.scale - prices[offer.classes[place]]
            limits[0] -= offer.work[place]
            for r, need in enumerate(offer.needs):
                limits[1 + r] -= need[place]
        if min(limits) < 0:
            return None
        q = offer.slots - len(offer.placed)
        choices = []
        for place, k in enumerate(offer.classes):
            takes = (offer.work[place], *(need[place] for need in offer.needs))
            if self.left[k] > 0 and k not in offer.banned and all(a <= b for a, b in zip(takes, limits, strict=True)):
                profit = offer.value[place] * self.scale - prices[k]
                choices.append((profit, takes, min(q, self.left[k])))
        case = _Case(own, q, limits, choices)
        return case if case.possible() else None


class _Case:
    """The choice of q requests within some limits."""

    def __init__(self, own: int, q: int, limits: list[int], choices: list[tuple[int, tuple[int, ...], int]]) -> None:
        self.own, self.q, self.limits, self.choices = own, q, limits, choices
        self.rough = self._rough() if self.possible() else 0

    def possible(self) -> bool:
        """Return whether enough requests are left, and the lightest of them fit each limit."""
        if sum(times for _, _, times in self.choices) < self.q:
            return False
        return all(self._lightest(r) <= limit for r, limit in enumerate(self.limits))

    def _lightest(self, r: int) -> int:
        total, rest = 0, self.q
        for weight, times in sorted((takes[r], times) for _, takes, times in self.choices):
            taken = min(rest, times)
            total, rest = total + taken * weight, rest - taken
        return total

    def _at(self, multipliers: list[int]) -> tuple[int, list[int]]:
        """Return the bound of the relaxation, and what its choice takes of each limit."""
        reduced = sorted(
            (
                (profit - sum(a * w for a, w in zip(multipliers, takes, strict=True)), takes, times)
                for profit, takes, times in self.choices
            ),
            key=lambda one: -one[0],
        )
        bound, rest = sum(a * limit for a, limit in zip(multipliers, self.limits, strict=True)), self.q
        usage = [0] * len(self.limits)
        for worth, takes, times in reduced:
            taken = min(rest, times)
            bound += taken * worth
            for r, weight in enumerate(takes):
                usage[r] += taken * weight
            rest -= taken
            if rest == 0:
                break
        return bound, usage

    def _rough(self) -> int:
        """Return the least bound along multipliers that are raised by bisection, one limit after the other."""
        if self.q == 0:
            self.multipliers = [0] * len(self.limits)
            return self.own
        if self.q == 1:
            self.multipliers = [0] * len(self.limits)
            return self.own + max(profit for profit, _, _ in self.choices)
        multipliers = [0] * len(self.limits)
        least, usage = self._at(multipliers)
        for _ in range(2 * len(self.limits)):
            over = [r for r, limit in enumerate(self.limits) if usage[r] > limit]
            if not over:
                break
            r = max(over, key=lambda r: usage[r] / (self.limits[r] + 1))
            below, above = multipliers[r], max(1024, 2 * multipliers[r])
            while above < 1 << 50:
                multipliers[r] = above
                bound, usage = self._at(multipliers)
                least = min(least, bound)
                if usage[r] <= self.limits[r]:
                    break
                below, above = above, 4 * above
            while above - below > 1 + above // 512:
                multipliers[r] = (above + below) // 2
                bound, usage = self._at(multipliers)
                least = min(least, bound)
                if usage[r] <= self.limits[r]:
                    above = multipliers[r]
                else:
                    below = multipliers[r]
            multipliers[r] = above
            _, usage = self._at(multipliers)
        self.multipliers = multipliers
        return self.own + least

    def best(self, known: int | None, steps: list[int]) -> int | None:
        """Return the most profit, `known` if nothing exceeds it, None where nothing fits and nothing is known.

        Parameters
        ----------
        known
            Profit of another mode; None for none.
        steps
            What is left of the steps of an evaluation, in one place.
        """
        if self.q <= 1:
            return self.rough if known is None else max(known, self.rough)
        offset = sum(a * limit for a, limit in zip(self.multipliers, self.limits, strict=True))
        rows = sorted(
            (
                (profit - sum(a * w for a, w in zip(self.multipliers, takes, strict=True)), profit, takes, times)
                for profit, takes, times in self.choices
            ),
            key=lambda one: (-one[0], one[2]),
        )
        reduced, profits = [row[0] for row in rows], [row[1] for row in rows]
        takes, times = [row[2] for row in rows], [row[3] for row in rows]
        lightest = [min(row[r] for row in takes) for r in range(len(self.limits))]
        by_work = sorted((row[0], profit) for row, profit in zip(takes, profits, strict=True))
        works = [work for work, _ in by_work]
        tops: list[int] = []
        for _, profit in by_work:
            tops.append(profit if not tops else max(tops[-1], profit))
        found = None if known is None else known - self.own
        stack = [(0, self.q, 0, offset, tuple(self.limits), 0)]
        while stack:
            c, rest, value, hope, rooms, repeated = stack.pop()
            steps[0] -= 1
            if steps[0] % 1_000 == 0:
                spend(2_000)
            if steps[0] < 0:
                raise TooLongError("the patterns of its workers take too long to be checked")
            if c >= len(rows) or (found is not None and hope + rest * reduced[c] <= found):
                continue
            # The case without any more of this class is looked at later, that with one more first.
            stack.append((c + 1, rest, value, hope, rooms, 0))
            after = tuple(room - weight for room, weight in zip(rooms, takes[c], strict=True))
            ahead = rest - 1
            if repeated >= times[c] or any(room < ahead * light for room, light in zip(after, lightest, strict=True)):
                continue
            if ahead == 0:
                if found is None or value + profits[c] > found:
                    found = value + profits[c]
                continue
            if found is not None:
                most = value + profits[c]
                for i in range(1, ahead + 1):
                    place = _last_up_to(works, after[0] // i)
                    most += tops[place] if place >= 0 else 0
                if most <= found:
                    continue
            stack.append((c, ahead, value + profits[c], hope + reduced[c], after, repeated + 1))
        return None if found is None else self.own + found


def _last_up_to(values: list[int], most: int) -> int:
    """Return the last place of an ascending list that holds at most `most`, -1 for none."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= most:
            low = middle + 1
        else:
            high = middle
    return low - 1
