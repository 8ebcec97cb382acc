"""Growths: reading them, and their sums against a loop over steps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.theory.laws.slot_law import LLM, Growth

CYCLES = st.lists(st.fractions(0, 5, max_denominator=12), min_size=1, max_size=6)


@given(CYCLES, st.integers(0, 60), st.integers(1, 40))
def test_up_to_is_the_sum_of_steps(cycle: list[Fraction], first: int, steps: int) -> None:
    growth = Growth(tuple(cycle))
    found = growth.up_to(first, steps)
    for place, k in enumerate(range(first, first + steps)):
        assert Fraction(int(found[place]), growth.unit) == sum(cycle[j % len(cycle)] for j in range(1, k + 1))


@given(CYCLES, st.integers(0, 30), st.integers(0, 30))
def test_latest_runs_backwards(cycle: list[Fraction], k: int, age: int) -> None:
    """A request of that age in step k has grown by the first `age` of them, over and over."""
    growth = Growth(tuple(cycle))
    k += age
    latest = growth.latest(k % len(cycle))
    grown = sum(latest[back % len(cycle)] for back in range(age))
    total = growth.up_to(0, k + 1)
    assert grown == Fraction(int(total[k] - total[k - age]), growth.unit)


@pytest.mark.parametrize(
    ("text", "cycle", "unit"),
    [
        ("1", [1], 1),
        ("0", [0], 1),
        ("1/2", [Fraction(1, 2)], 2),
        ("0.5", [Fraction(1, 2)], 2),
        ("0+1+3", [0, 1, 3], 1),
        ("1/2+1/3", [Fraction(1, 2), Fraction(1, 3)], 6),
    ],
)
def test_texts(text: str, cycle: list[Fraction], unit: int) -> None:
    growth = Growth.parse(text)
    assert list(growth.cycle) == cycle
    assert (growth.unit, growth.largest) == (unit, max(cycle))


@pytest.mark.parametrize(
    "text", ["", "fast", "1+", "+", "1//2", "1/0", "-1", "0+-1", "1001", "1/1001", "nan", "inf", "1e9", "1e999999999"]
)
def test_nonsense_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(InputError) as refused:
        Growth.parse(text)
    assert f"growth is '{text}'" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_llm_grows_by_a_token_a_step() -> None:
    assert np.array_equal(LLM.up_to(5, 4), [5, 6, 7, 8])
