"""FCFS under overload, step by step and slot by slot, from its definition; random numbers by Python's integers.

SplitMix64 as published: the state goes up by an odd constant, and each state is mixed into an output. A slot's outputs
are taken in turn, one for the lifetime and one for the prompt of each request that comes to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

MASK = (1 << 64) - 1


def splitmix64(seed: int) -> Iterator[int]:
    """The generator of Steele, Lea and Flood (OOPSLA 2014), figure 17."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def lifetime(word: int, p: float) -> int:
    """Geo(p) on 1, 2, ... by inversion, in floats as they come."""
    if p == 1:
        return 1
    u = ((word >> 11) + 0.5) * 2.0**-53
    return 1 + int(math.log(u) / math.log1p(-p))


def prompt(word: int, table: Sequence[Sequence[int]]) -> int:
    """A length from a table of aliases: upper half of the word for the column, lower for the height."""
    value, threshold, other = table
    column = ((word >> 32) * len(value)) >> 32
    return value[column] if (word & 0xFFFFFFFF) < threshold[column] else value[other[column]]


class Slot:
    """A slot, and the request in it."""

    def __init__(self, start: int, p: float, table: Sequence[Sequence[int]]) -> None:
        self.words, self.p, self.table = splitmix64(start), p, table
        self.admit()

    def admit(self) -> None:
        self.left = lifetime(next(self.words), self.p)
        self.prompt = prompt(next(self.words), self.table)
        self.size, self.age = Fraction(self.prompt), 0

    def step(self, gained: Fraction) -> None:
        """Growth, end, admission."""
        self.size += gained
        self.age += 1
        self.left -= 1
        if self.left == 0:
            self.admit()


def imbalances(
    starts: Sequence[Sequence[int]], p: float, table: Sequence[Sequence[int]], cycle: Sequence[Fraction], steps: int
) -> list[Fraction]:
    """The imbalance of the steps 1 .. `steps`, read after admission."""
    fleet = [[Slot(int(start), p, table) for start in worker] for worker in starts]
    found = []
    for k in range(1, steps + 1):
        for worker in fleet:
            for slot in worker:
                slot.step(cycle[k % len(cycle)])
        loads = [sum((slot.size for slot in worker), Fraction(0)) for worker in fleet]
        found.append(len(loads) * max(loads) - sum(loads))
    return found
