"""The law of prompt lengths: what the theorems call s, on the whole numbers 1 .. s_max (BF-IO, section 3).

Moments are exact fractions; the table of aliases is what kernels draw from (Walker 1977; thresholds of 32 bits).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError

_WHOLE = 1 << 32

#: Longest prompt: more is in no context window, and every length is an exact fraction in memory.
LONGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class PromptLaw:
    """Lengths and how often each comes.

    Parameters
    ----------
    lengths
        Strictly increasing tokens, from 1.
    weights
        A whole number above 0 for each; only their proportions count.
    name
        For reports: ``s<=8``.
    """

    lengths: tuple[int, ...]
    weights: tuple[int, ...]
    name: str = ""
    shares: tuple[Fraction, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.lengths or len(self.lengths) != len(self.weights):
            raise InputError(f"a prompt law has {len(self.lengths)} lengths and {len(self.weights)} weights")
        if self.lengths[0] < 1 or any(a >= b for a, b in zip(self.lengths, self.lengths[1:], strict=False)):
            raise InputError(f"lengths of a prompt law are {self.lengths}; expected strictly increasing, from 1")
        if min(self.weights) < 1:
            raise InputError(f"weights of a prompt law are {self.weights}; expected whole numbers above 0")
        total = sum(self.weights)
        object.__setattr__(self, "shares", tuple(Fraction(weight, total) for weight in self.weights))

    @classmethod
    def uniform(cls, s_max: int) -> PromptLaw:
        """Return the uniform law on 1 .. `s_max`."""
        if not 1 <= s_max <= LONGEST:
            raise InputError(f"s_max is {s_max}; expected 1 to {LONGEST:,} tokens")
        return cls(tuple(range(1, s_max + 1)), (1,) * s_max, f"s<={s_max}")

    @classmethod
    def two_sizes(cls, s_max: int) -> PromptLaw:
        """Return the law that is 1 or `s_max`, half of the time each."""
        return cls((1, s_max), (1, 1), f"s in {{1,{s_max}}}")

    @property
    def largest(self) -> int:
        """The largest length, in tokens."""
        return self.lengths[-1]

    @property
    def mean(self) -> Fraction:
        """Tokens."""
        return self._moment(Fraction(0), 1)

    @property
    def variance(self) -> Fraction:
        """Tokens squared."""
        return self._moment(self.mean, 2)

    @property
    def third_moment(self) -> Fraction:
        """The third central moment, tokens cubed."""
        return self._moment(self.mean, 3)

    def probabilities(self) -> NDArray[np.float64]:
        """Return float64 (s_max + 1,): the probability of each length from 0."""
        found = np.zeros(self.largest + 1)
        found[list(self.lengths)] = [float(share) for share in self.shares]
        return found

    def aliases(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return value, threshold (0 .. 2^32) and alias, each int64 (n,), for `lbopt.kernels.sampling.draw.prompt`."""
        n = len(self.lengths)
        left = [share * n for share in self.shares]
        threshold, other = np.full(n, _WHOLE, np.int64), np.arange(n, dtype=np.int64)
        small = [i for i in range(n) if left[i] < 1]
        large = [i for i in range(n) if left[i] >= 1]
        while small and large:
            i, j = small.pop(), large.pop()
            threshold[i], other[i] = round(left[i] * _WHOLE), j
            left[j] -= 1 - left[i]
            (small if left[j] < 1 else large).append(j)
        return np.array(self.lengths, np.int64), threshold, other

    def _moment(self, centre: Fraction, power: int) -> Fraction:
        return sum(
            (share * (length - centre) ** power for length, share in zip(self.lengths, self.shares, strict=True)),
            Fraction(0),
        )
