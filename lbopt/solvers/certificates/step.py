"""The step problem as the checker sees it: size classes, open workers, and the envelopes that have to be refuted.

Where fewer requests wait than slots are free, requests of size zero fill up the difference, so that from then on every
slot is filled by exactly one request. All in Python integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lbopt.solvers.recount import Numbers


@dataclass(frozen=True, slots=True)
class SizeClasses:
    """The requests by (size, forced): sizes ascending, of equal sizes the class that may wait before the forced one."""

    sizes: tuple[int, ...]
    forced: tuple[bool, ...]
    counts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sizes)


def extreme_total(values: list[tuple[int, int]], count: int, *, largest: bool) -> int:
    """Return the largest or smallest total of `count` items; `values` holds (value, how many there are)."""
    total = 0
    for value, available in sorted(values, reverse=largest):
        taken = min(available, count)
        total += taken * value
        count -= taken
        if not count:
            break
    return total


@dataclass(frozen=True, slots=True)
class Step:
    """A step problem at horizon 0, padded.

    Parameters
    ----------
    loads, slots
        Load (tokens) and free slots of each worker.
    classes
        The waiting requests.
    lightest
        {c: total size of the c smallest requests}, for all numbers c of free slots.
    unit
        A common divisor of all sizes and of all differences between loads, tokens: every cost is a multiple of it.
    least_envelope
        No assignment has a smaller largest load.
    most_admitted, least_admitted
        No assignment admits more tokens, and none fewer: every slot is filled.
    """

    loads: tuple[int, ...]
    slots: tuple[int, ...]
    classes: SizeClasses
    lightest: dict[int, int]
    unit: int
    least_envelope: int
    most_admitted: int
    least_admitted: int

    @classmethod
    def of(cls, p: Numbers) -> Step:
        """Build it from a problem of horizon 0."""
        loads, slots = tuple(row[0] for row in p.base), tuple(p.slots)
        sizes = [row[0] for row in p.work]
        admitted = sum(slots)
        numbers: dict[tuple[int, bool], int] = {}
        for key in zip(sizes, map(bool, p.must), strict=True):
            numbers[key] = numbers.get(key, 0) + 1
        if len(sizes) < admitted:
            numbers[0, False] = numbers.get((0, False), 0) + admitted - len(sizes)
        order = sorted(numbers)
        classes = SizeClasses(
            tuple(size for size, _ in order), tuple(must for _, must in order), tuple(numbers[key] for key in order)
        )
        every = list(zip(classes.sizes, classes.counts, strict=True))
        lightest = {c: extreme_total(every, c, largest=False) for c in set(slots)}
        fixed = [(size, n) for (size, must), n in numbers.items() if must]
        free = [(size, n) for (size, must), n in numbers.items() if not must]
        left = admitted - sum(n for _, n in fixed)
        forced = sum(size * n for size, n in fixed)
        return cls(
            loads=loads,
            slots=slots,
            classes=classes,
            lightest=lightest,
            unit=math.gcd(*sizes, *(load - loads[0] for load in loads)) or 1,
            least_envelope=max(load + lightest[c] for load, c in zip(loads, slots, strict=True)),
            most_admitted=forced + extreme_total(free, left, largest=True),
            least_admitted=forced + extreme_total(free, left, largest=False),
        )

    @property
    def open_workers(self) -> list[int]:
        """Workers that have free slots."""
        return [g for g, c in enumerate(self.slots) if c]

    def attainable_from(self, envelope: int) -> int:
        """Return the first envelope from here on that loads can have: all are equal modulo `unit`."""
        return envelope + (self.loads[0] - envelope) % self.unit

    def attainable_to(self, envelope: int) -> int:
        """Return the last envelope up to here that loads can have."""
        return envelope - (envelope - self.loads[0]) % self.unit

    def cheaper_than(self, bound: int) -> int:
        """Return the largest cost below `bound` that an assignment can have: a multiple of `unit`."""
        return (bound - 1) // self.unit * self.unit

    def last_envelope(self, bound: int) -> int:
        """Return the last envelope at which a cost below `bound` is conceivable: G M - total - most <= that cost."""
        room = self.cheaper_than(bound) + sum(self.loads) + self.most_admitted
        return self.attainable_to(room // len(self.loads))

    def tokens_needed(self, envelope: int, bound: int) -> int:
        """Return the least admitted total of an assignment cheaper than `bound` whose envelope is at least this."""
        return max(self.least_admitted, len(self.loads) * envelope - sum(self.loads) - self.cheaper_than(bound))
