"""The rule by which real costs become integers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.assignment import balanced_assignment, scale_costs
from lbopt.assignment.costs import exponent_below, largest_cost

FLOATS = st.floats(-1e308, 1e308, allow_subnormal=True)


@pytest.mark.filterwarnings("ignore:.* count as zero")
@given(st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_finest_power_of_two_and_the_nearest_integers(rows):
    costs = np.array(rows)
    integers, exponent = scale_costs(costs)
    scale, most = Fraction(2) ** exponent, largest_cost(*costs.shape)
    exact = [Fraction(float(value)) * scale for value in costs.ravel()]
    assert integers.ravel().tolist() == [round(value) for value in exact]
    assert max(map(abs, exact)) <= most
    if costs.any():
        assert max(map(abs, exact)) * 2 > most


@pytest.mark.parametrize(("points", "centres"), [(1, 1), (1_000_000, 64), (10, 10_000)])
def test_no_total_and_no_path_overflows(points, centres):
    most = largest_cost(points, centres)
    assert points * most <= 2**62
    assert 2 * (centres + 2) * most <= 2**58


def test_integers_are_taken_as_they_are():
    costs = np.array([[3, -4]])
    assert scale_costs(costs)[0] is costs
    for kind in (np.int16, np.uint64):
        integers, exponent = scale_costs(abs(costs).astype(kind))
        assert (integers.tolist(), integers.dtype, exponent) == ([[3, 4]], np.int64, None)


def test_zero_costs_have_scale_one():
    assert scale_costs(np.zeros((2, 2)))[1] == 0
    assert exponent_below(0.0, 7) == 0


@pytest.mark.filterwarnings("ignore:.* count as zero")
@pytest.mark.parametrize("seed", range(10))
def test_the_total_is_within_what_rounding_may_cost(seed):
    rng = np.random.default_rng(seed)
    costs = rng.random((6, 3)) ** 9
    answer = balanced_assignment(costs, 2)
    labels = [tuple(permutation) for permutation in _all_labels()]
    least = min(sum(Fraction(float(costs[i, k])) for i, k in enumerate(choice)) for choice in labels)
    real = sum(Fraction(float(costs[i, k])) for i, k in enumerate(answer.labels))
    assert least <= real <= least + Fraction(answer.rounding)


def _all_labels():
    from itertools import permutations

    return set(permutations((0, 0, 1, 1, 2, 2)))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_total_beyond_float64_is_infinite_and_exact_in_integers(sign):
    costs = sign * np.full((4, 2), 1e308)
    found = balanced_assignment(costs, 2)
    assert found.cost == sign * np.inf
    integers, _ = scale_costs(costs)
    assert found.scaled_cost == 4 * int(integers[0, 0])
    found.check(costs)
