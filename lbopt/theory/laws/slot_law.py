"""The stationary law of one slot, from the law of prompts and from what every request gains in a step.

The law of prompt lengths: what the theorems call s, on the whole numbers 1 .. s_max (BF-IO, section 3).

Moments are exact fractions; the table of aliases is what kernels draw from (Walker 1977; thresholds of 32 bits).

What every running request gains in a step: the drift delta_k of Theorem 3 (BF-IO, definition 2), with a period.

The theorem lets delta_k be any deterministic sequence between 0 and delta_max. Here it is a cycle of fractions: one
entry is a constant growth (1 is the LLM's, 0 constant jobs), several are a periodic one.

The stationary law of one slot: its prompt plus what it grew since (BF-IO, step 2.A to 2.C and Lemma 8).

A slot is refilled in the step in which its request ends, which happens with probability p in every step whatever came
before. So the age A, the number of steps since the present request came, is renewed: P(A = a) = p (1 - p)^a on
a = 0, 1, ..., of mean (1-p)/p, variance (1-p)/p^2 and third central moment (1-p)(2-p)/p^3. The prompt s is independent
of it, and the size is Y = s + Delta(A), where Delta(a) is the growth of the last a steps. With a constant growth d,

    E[Y]   = E[s] + d (1-p)/p,
    Var[Y] = Var[s] + d^2 (1-p)/p^2              (sigma_snap^2 at d = 1, eq. 26),
    mu_3   = mu_3(s) + d^3 (1-p)(2-p)/p^3,

because central moments up to the third add up over independent terms. With a growth that changes from step to step,
Delta depends on when one looks; the law is then computed from the age law, term by term.

Growths are fractions with one denominator, `unit`, so that the law lives on whole numbers of 1/unit tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


#: Ages whose probability is below this in total are left out; float64 sees no more.
TAIL = 1e-18

#: Most values of a law: 2 GiB with what building it needs.
WIDEST = 1 << 26


def age_mean(p: float) -> float:
    """E[A], steps."""
    return (1 - p) / p


def age_variance(p: float) -> float:
    """Var[A], steps squared."""
    return (1 - p) / p**2


def age_third_moment(p: float) -> float:
    """The third central moment of A, steps cubed."""
    return (1 - p) * (2 - p) / p**3


@dataclass(frozen=True, slots=True)
class SlotLaw:
    """The law of a slot's size.

    Parameters
    ----------
    probabilities
        float64 (n,): of the sizes 0, 1/unit, 2/unit, ... tokens.
    unit
        Sizes are whole numbers of 1/unit tokens.
    """

    probabilities: NDArray[np.float64]
    unit: int = 1

    @property
    def mean(self) -> float:
        """Tokens."""
        return float(self.probabilities @ self._sizes())

    @property
    def variance(self) -> float:
        """Tokens squared."""
        return self._central(2)

    @property
    def skewness(self) -> float:
        """gamma_1, without unit."""
        return float(self._central(3) / self.variance**1.5)

    @property
    def excess_kurtosis(self) -> float:
        """The fourth standardised cumulant, without unit."""
        return float(self._central(4) / self.variance**2 - 3)

    @property
    def third_absolute_moment(self) -> float:
        """E|Y - E[Y]|^3, tokens cubed: what Berry and Esseen divide by."""
        return float(self.probabilities @ np.abs(self._sizes() - self.mean) ** 3)

    def _central(self, power: int) -> float:
        return float(self.probabilities @ (self._sizes() - self.mean) ** power)

    def _sizes(self) -> NDArray[np.float64]:
        return np.arange(self.probabilities.size) / self.unit


def snapshot_variance(law: PromptLaw, p: float, growth: float = 1.0) -> float:
    """Return sigma_snap^2 in tokens squared: of a slot seen at any time, for a constant `growth` a step."""
    return float(law.variance) + growth**2 * age_variance(p)


def prompt_slot_law(law: PromptLaw) -> SlotLaw:
    """Return the law of a slot in a round of Theorem 1, where all have the same age: that of the prompt."""
    return SlotLaw(law.probabilities())


def slot_law(law: PromptLaw, p: float, growth: Fraction | int = 1) -> SlotLaw:
    """Return the stationary law for a constant `growth` of tokens a step, 0 or more."""
    return slot_law_seen(law, p, [Fraction(growth)])


def slot_law_seen(law: PromptLaw, p: float, latest: Sequence[Fraction | int]) -> SlotLaw:
    """Return the stationary law at a step whose latest growths were `latest`, newest first, and again from the front.

    A slot of age a has grown by the first a of them.
    """
    ages = _whole(1 if p == 1 else 1 + math.log(TAIL) / math.log1p(-_checked(p)), law, latest)
    share = p * (1 - p) ** np.arange(ages, dtype=np.float64)
    return _of_ages(law, share / share.sum(), latest)


def slot_law_at(law: PromptLaw, p: float, growth: Growth, step: int) -> SlotLaw:
    """Return the law in step `step` of a slot that was filled in step 0: no request is older than `step`.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    growth
        Tokens that a running request gains in a step.
    """
    latest = growth.latest(step % len(growth.cycle))
    share = _checked(p) * (1 - p) ** np.arange(_whole(step + 1, law, latest), dtype=np.float64)
    share[-1] = (1 - p) ** step
    return _of_ages(law, share, latest)


def _whole(ages: float, law: PromptLaw, latest: Sequence[Fraction | int]) -> int:
    """Return the number of ages, rounded up, unless a law on them is too wide to hold."""
    unit = math.lcm(*(Fraction(step).denominator for step in latest))
    width = max(ages, float(ages * max(latest, default=0) * unit + law.largest * unit))
    if width > WIDEST:
        raise InputError(
            f"the law of a slot spreads over {width:.2g} values, more than {WIDEST}; take a larger p, "
            "shorter prompts, or a growth of smaller numbers"
        )
    return math.ceil(ages)


def _of_ages(law: PromptLaw, share: NDArray[np.float64], latest: Sequence[Fraction | int]) -> SlotLaw:
    """Return the law of prompt plus growth, where an age of a has the probability `share[a]`."""
    steps = [Fraction(entry) for entry in latest]
    if not steps or min(steps) < 0:
        raise InputError(f"growths are {[str(step) for step in steps]}; expected at least one, none below 0")
    unit = math.lcm(*(step.denominator for step in steps))
    each = np.resize(np.array([int(step * unit) for step in steps], np.int64), share.size - 1)
    grown = np.concatenate(([0], np.cumsum(each)))
    of_age = np.zeros(int(grown[-1]) + 1)
    np.add.at(of_age, grown, share)
    found = np.zeros(of_age.size + law.largest * unit)
    for length, weight in zip(
        law.lengths, law.shares, strict=True
    ):  # shifted copies: all terms positive, no digit lost
        found[length * unit : length * unit + of_age.size] += float(weight) * of_age
    return SlotLaw(found, unit)


def _checked(p: float) -> float:
    if not 0 < p <= 1:
        raise InputError(f"the probability of an end is {p}; expected 0 < p <= 1")
    return p
