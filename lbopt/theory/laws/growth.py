"""What every running request gains in a step: the drift delta_k of Theorem 3 (BF-IO, definition 2), with a period.

The theorem lets delta_k be any deterministic sequence between 0 and delta_max. Here it is a cycle of fractions: one
entry is a constant growth (1 is the LLM's, 0 constant jobs), several are a periodic one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError

#: Larger numerators or denominators are of no use, and would make laws too wide to compute.
_LARGEST = 1000


@dataclass(frozen=True, slots=True)
class Growth:
    """A cycle of growths; step k gains the entry k modulo its length."""

    cycle: tuple[Fraction, ...]

    @classmethod
    def parse(cls, text: str) -> Growth:
        """Read ``1``, ``1/2``, ``0.5`` or a cycle such as ``0+1+3``."""
        try:
            if "e" in text.lower():
                raise ValueError(text)  # a Fraction would write out all digits of 1e999999999
            cycle = tuple(Fraction(part) for part in text.split("+"))
        except (ValueError, ZeroDivisionError):
            raise InputError(f"growth is '{text}'; expected tokens a step such as 1, 1/2, or a cycle 0+1+3") from None
        if min(cycle) < 0 or max(max(part.numerator, part.denominator) for part in cycle) > _LARGEST:
            raise InputError(f"growth is '{text}'; expected fractions from 0, of numbers up to {_LARGEST}")
        return cls(cycle)

    @property
    def unit(self) -> int:
        """The common denominator: sizes are whole numbers of 1/unit tokens."""
        return math.lcm(*(part.denominator for part in self.cycle))

    @property
    def largest(self) -> Fraction:
        """delta_max, tokens a step."""
        return max(self.cycle)

    def up_to(self, first: int, steps: int) -> NDArray[np.int64]:
        """Return int64 (steps,): the growth of steps 1 .. k in 1/unit tokens, for k from `first` on."""
        each = np.array([int(part * self.unit) for part in self.cycle], np.int64)
        partial = np.concatenate(([0], np.cumsum(np.roll(each, -1))))  # of the steps 1 .. i, i up to a whole cycle
        k = np.arange(first, first + steps, dtype=np.int64)
        found: NDArray[np.int64] = partial[-1] * (k // each.size) + partial[k % each.size]
        return found

    def latest(self, phase: int) -> list[Fraction]:
        """Return one cycle of growths backwards from a step k with k modulo the cycle equal to `phase`."""
        return [self.cycle[(phase - back) % len(self.cycle)] for back in range(len(self.cycle))]


LLM = Growth((Fraction(1),))
