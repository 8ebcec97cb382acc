"""The floor of FCFS's imbalance with constants: below the exact law, and near it where loads are nearly normal."""

from __future__ import annotations

import math

import pytest

from lbopt.exceptions import InputError
from lbopt.theory.claims.moments import SHEVTSOVA
from lbopt.theory.laws.load_law import load_law
from lbopt.theory.laws.normal_maximum import expected_maximum, maximum_floor
from lbopt.theory.laws.slot_law import PromptLaw, slot_law

FLEETS = [(2, 4096, 0.2, 8), (8, 1024, 0.5, 4), (16, 256, 0.2, 8), (64, 4096, 0.5, 8), (256, 16, 0.02, 100)]


@pytest.mark.parametrize(("G", "B", "p", "s_max"), FLEETS)
def test_it_is_below_the_exact_law(G: int, B: int, p: float, s_max: int) -> None:
    """With Berry and Esseen's distance, and with the law's own one, which is smaller: then the floor is higher."""
    slot = slot_law(PromptLaw.uniform(s_max), p)
    law = load_law(slot, B)
    exact = law.expected_imbalance(G) / (G * math.sqrt(slot.variance * B))
    proved = maximum_floor(G, SHEVTSOVA * slot.third_absolute_moment / (slot.variance**1.5 * math.sqrt(B)))
    assert proved <= maximum_floor(G, law.normal_distance()) <= exact


def test_without_distance_it_is_the_normal_maximum() -> None:
    """Only the sums' error is lost. Without its negative part the floor would be above the mean, by 0.1 at G = 2."""
    for G in (2, 8, 64, 1024):
        assert expected_maximum(G) - 3e-4 <= maximum_floor(G, 0.0) <= expected_maximum(G)


def test_it_falls_with_the_distance() -> None:
    """A worse approximation proves less; no approximation at all proves nothing above 0."""
    floors = [maximum_floor(8, distance) for distance in (0.0, 0.01, 0.1, 0.5)]
    assert floors == sorted(floors, reverse=True)
    assert floors[-1] <= 0


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="G is 1 and the distance nan"):
        maximum_floor(1, math.nan)
