"""What certificates of prices have in common: ranges that cover all envelopes, and trees of cases that refute a range.

A *case* is a decision in which some requests have been placed: fewer copies, and workers with fewer slots and less
room. It is of the same kind as the whole, so any prices bound what it can be worth,

    scale * value  <=  scale * (value of what is placed) + sum_k (copies left of k) * price_k + sum_g B_g,

B_g being the best profit of worker g in the case, or a number above it. A record of a tree either says which prices
refute the case that it stands for, or splits it into cases that cover it and whose records follow, in preorder.

The ranges of a goal are cut to the envelopes that a better decision can have before anything else, which makes every
claim weaker: with a smaller end no B_g rises and no pattern is added, with a larger beginning more is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates.format import Node

#: Nodes of a goal between two looks at the clock.
_TOGETHER = 8

C = TypeVar("C")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Place:
    """What one worker can still take.

    Parameters
    ----------
    slots
        How many requests.
    rooms
        How much work, and how much of each resource.
    banned
        Classes of which it takes no more.
    """

    slots: int
    rooms: tuple[int, ...]
    banned: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Case:
    """What is left after some placements: copies of each class, the workers, and the value of what is placed."""

    left: tuple[int, ...]
    workers: dict[int, Place]
    placed: int = 0

    def with_one(self, g: int, k: int, takes: tuple[int, ...], value: int) -> Case:
        """Return the case in which worker g takes one request of class k, whether it fits or not."""
        place = self.workers[g]
        rooms = tuple(a - b for a, b in zip(place.rooms, takes, strict=True))
        left = (*self.left[:k], self.left[k] - 1, *self.left[k + 1 :])
        workers = {**self.workers, g: replace(place, slots=place.slots - 1, rooms=rooms)}
        return Case(left, workers, self.placed + value)

    def without(self, k: int) -> Case:
        """Return the case in which all that is left of class k waits."""
        return replace(self, left=(*self.left[:k], 0, *self.left[k + 1 :]))

    def banning(self, g: int, k: int) -> Case:
        """Return the case in which worker g takes no more of class k."""
        place = self.workers[g]
        return replace(self, workers={**self.workers, g: replace(place, banned=place.banned | {k})})


def walk(records: Sequence[R], below: Callable[[C, R], Sequence[C]], root: C) -> None:
    """Walk a tree in preorder; `below` checks one record and returns the cases whose records follow.

    Raises
    ------
    CertificateError
        Naming the record that does not hold, or where the tree has too many or too few of them.
    """
    waiting = [root]
    for number, record in enumerate(records):
        if not waiting:
            raise CertificateError(f"the tree is complete after {number} records, but it has {len(records)}")
        spend(100)
        try:
            waiting += reversed(below(waiting.pop(), record))
        except CertificateError as error:
            raise type(error)(f"record {number} of the tree: {error}") from None
    if waiting:
        raise CertificateError(f"the tree ends after {len(records)} records, and {len(waiting)} cases are open")


class Goal(Protocol):
    """What a bound rests on: a better decision has an envelope among first, first + unit, ..., last."""

    first: int
    last: int
    unit: int

    def refute(self, first: int, last: int, node: Node) -> None:
        """Return if no better decision has an envelope in this range, by what the node says."""


def check_goal(goal: Goal, nodes: Sequence[Node]) -> None:
    """Return if the nodes cover all envelopes of a goal and hold.

    Raises
    ------
    CertificateError
        Naming a node, and the numbers, for which they do not.
    """
    first, last, unit = goal.first, goal.last, goal.unit
    ranges = []
    for i, node in enumerate(nodes):
        a, b = max(node.first, first), min(node.last, last)
        a, b = a + (first - a) % unit, b - (b - first) % unit
        if a <= b:
            ranges.append((a, b, i))
    missing = first
    for a, b, _ in sorted(ranges):
        if a > missing:
            break
        missing = max(missing, b + unit)
    if missing <= last:
        raise CertificateError(
            f"no node covers envelope {missing}; a better decision is conceivable from {first} to {last}"
        )
    ranges.sort(key=lambda one: -one[1])  # what is known of a larger envelope serves a smaller one
    for number, (a, b, i) in enumerate(ranges):
        if number % _TOGETHER == 0:
            spend(100 * _TOGETHER)
        try:
            goal.refute(a, b, nodes[i])
        except CertificateError as error:
            raise type(error)(f"node {i} (envelopes {a}..{b}): {error}") from None
