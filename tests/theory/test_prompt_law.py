"""Prompt laws: moments by hand, and the shares that a table of aliases really gives, computed and not sampled."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.theory.laws.slot_law import PromptLaw

LAWS = st.builds(
    lambda weights: PromptLaw(tuple(sorted(weights)), tuple(weights[length] for length in sorted(weights))),
    st.dictionaries(st.integers(1, 500), st.integers(1, 10**6), min_size=1, max_size=40),
)


def shares_of_table(law: PromptLaw) -> dict[int, Fraction]:
    """The probability of each length as the kernel draws it: the upper 32 bits name a column, the lower a height."""
    value, threshold, other = law.aliases()
    n, whole = value.size, 1 << 32
    found = dict.fromkeys(law.lengths, Fraction(0))
    for i in range(n):
        # words w with floor(w n / 2^32) = i
        words = -(-(i + 1) * whole // n) - -(-i * whole // n)
        own = Fraction(int(threshold[i]), whole)
        found[int(value[i])] += Fraction(words, whole) * own
        found[int(value[other[i]])] += Fraction(words, whole) * (1 - own)
    return found


@given(LAWS)
def test_aliases_give_the_shares(law: PromptLaw) -> None:
    n = len(law.lengths)
    found = shares_of_table(law)
    assert sum(found.values()) == 1
    for length, share in zip(law.lengths, law.shares, strict=True):
        # columns are uneven by one word of 2^32, thresholds rounded to half a word, and each may feed every length
        assert abs(found[length] - share) <= Fraction(2 * n, 1 << 32)


@given(LAWS)
def test_thresholds_alone_are_within_a_word(law: PromptLaw) -> None:
    """With even columns, only the rounding of each threshold is left: half a word in a column, n columns."""
    value, threshold, other = law.aliases()
    n, whole = value.size, 1 << 32
    found = dict.fromkeys(law.lengths, Fraction(0))
    for i in range(n):
        own = Fraction(int(threshold[i]), whole)
        found[int(value[i])] += own / n
        found[int(value[other[i]])] += (1 - own) / n
    for length, share in zip(law.lengths, law.shares, strict=True):
        assert abs(found[length] - share) <= Fraction(1, whole)
    assert ((threshold >= 0) & (threshold <= whole)).all()
    assert ((other >= 0) & (other < n)).all()


@given(LAWS)
def test_moments_are_those_of_the_definition(law: PromptLaw) -> None:
    total = sum(law.weights)
    pairs = list(zip(law.lengths, law.weights, strict=True))
    mean = Fraction(sum(length * weight for length, weight in pairs), total)
    assert law.mean == mean
    for power, found in ((2, law.variance), (3, law.third_moment)):
        assert found == sum(weight * (length - mean) ** power for length, weight in pairs) / total
    probabilities = law.probabilities()
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert probabilities.shape == (law.largest + 1,)
    assert np.flatnonzero(probabilities).tolist() == list(law.lengths)


@pytest.mark.parametrize("s_max", [1, 2, 8, 100])
def test_uniform(s_max: int) -> None:
    law = PromptLaw.uniform(s_max)
    assert (law.mean, law.variance, law.third_moment) == (Fraction(s_max + 1, 2), Fraction(s_max**2 - 1, 12), 0)
    assert law.name == f"s<={s_max}"


def test_two_sizes() -> None:
    law = PromptLaw.two_sizes(9)
    assert (law.mean, law.variance, law.third_moment, law.largest) == (5, 16, 0, 9)


@pytest.mark.parametrize(
    ("lengths", "weights", "says"),
    [
        ((), (), "0 lengths and 0 weights"),
        ((1, 2), (1,), "2 lengths and 1 weights"),
        ((0, 2), (1, 1), "strictly increasing, from 1"),
        ((2, 2), (1, 1), "strictly increasing, from 1"),
        ((3, 2), (1, 1), "strictly increasing, from 1"),
        ((1, 2), (1, 0), "whole numbers above 0"),
    ],
)
def test_what_is_no_law_is_refused(lengths: tuple[int, ...], weights: tuple[int, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        PromptLaw(lengths, weights)


@pytest.mark.parametrize("s_max", [0, -3, 10**12])
def test_no_prompt_is_that_short_or_long(s_max: int) -> None:
    with pytest.raises(InputError, match=f"s_max is {s_max}"):
        PromptLaw.uniform(s_max)
