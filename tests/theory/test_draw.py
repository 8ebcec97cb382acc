"""The chains' random numbers: SplitMix64 word for word, and the laws they give, computed from words and not sampled."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive import fcfs_chain as naive

from lbopt.kernels.sampling import draw
from lbopt.theory.chains.batch_means import slot_streams
from lbopt.theory.laws.slot_law import PromptLaw

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # meant, where not compiled

WORDS = st.integers(0, 2**64 - 1)


def test_published_values() -> None:
    """The first outputs of seed 1234567, as reference implementations print them."""
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert list(itertools.islice(naive.splitmix64(1234567), 5)) == expected
    assert [int(draw.word(np.uint64(1234567), n)) for n in range(5)] == expected


@given(WORDS, st.integers(0, 40))
@example(2**64 - 1, 0)
def test_any_word_of_any_stream(start: int, n: int) -> None:
    wanted = next(itertools.islice(naive.splitmix64(start), n, None))
    assert int(draw.word(np.uint64(start), n)) == wanted


@given(WORDS, st.floats(1e-6, 1.0))
@example(0, 0.5)
@example(2**64 - 1, 0.5)
@example(2**64 - 1, 1e-6)
@example(0, 1.0)
def test_lifetime_is_the_inverse_of_its_law(word: int, p: float) -> None:
    log_keep = math.log1p(-p) if p < 1 else -math.inf
    found = int(draw.lifetime(np.uint64(word), log_keep))
    assert found == naive.lifetime(word, p)
    assert found >= 1
    if 1e-4 < p < 0.999:  # (1-p)^found < u <= (1-p)^(found-1), up to rounding of the logarithm
        u = Fraction(2 * (word >> 11) + 1, 2**54)
        assert float(u) <= (1 - p) ** (found - 1) * (1 + 1e-9)
        assert float(u) >= (1 - p) ** found * (1 - 1e-9)


@pytest.mark.parametrize("p", [0.2, 0.02, 0.9])
def test_lifetimes_on_an_even_grid_have_the_mean_and_law_of_geo(p: float) -> None:
    """Over words evenly spread the shares are those of Geo(p) within a word's grid."""
    n = 1 << 14
    grid = [((2 * i + 1) << 63) // n for i in range(n)]
    found = np.array([int(draw.lifetime(np.uint64(one), math.log1p(-p))) for one in grid])
    for life in range(1, 8):
        assert np.mean(found == life) == pytest.approx(p * (1 - p) ** (life - 1), abs=2 / n)
    assert found.mean() == pytest.approx(1 / p, rel=2e-3)


@given(WORDS, st.integers(1, 60))
def test_columns_and_heights(word: int, columns: int) -> None:
    assert int(draw.column(np.uint64(word), columns)) == ((word >> 32) * columns) >> 32
    assert 0 <= int(draw.column(np.uint64(word), columns)) < columns
    assert int(draw.height(np.uint64(word))) == word % 2**32


@given(WORDS, st.lists(st.integers(1, 20), min_size=1, max_size=9))
@example(2**64 - 1, [3, 1, 1])
def test_prompts(word: int, weights: list[int]) -> None:
    table = PromptLaw(tuple(range(1, len(weights) + 1)), tuple(weights)).aliases()
    wanted = naive.prompt(word, [column.tolist() for column in table])
    assert int(draw.prompt(np.uint64(word), *table)) == wanted


def test_streams_differ_and_come_again() -> None:
    first, again, other = slot_streams(1, 30, 40), slot_streams(1, 30, 40), slot_streams(2, 30, 40)
    assert first.dtype == np.uint64
    assert np.array_equal(first, again)
    assert np.unique(np.concatenate([first, other])).size == 2 * 30 * 40
