"""What must not change the least total, or change it in a known way, and what no answer may break."""

import numpy as np
from assignment.problems import problems
from hypothesis import given
from hypothesis import strategies as st

from lbopt.assignment import balanced_assignment
from lbopt.assignment.costs import largest_cost


def total(costs, capacity, lower, **more):
    answer = balanced_assignment(costs, capacity, lower=lower, **more)
    answer.check(costs)
    return answer.scaled_cost


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_points_and_centres(problem, random):
    costs, lower, capacity = problem
    rows, columns = list(range(len(costs))), list(range(capacity.size))
    random.shuffle(rows)
    random.shuffle(columns)
    assert total(costs, capacity, lower) == total(costs[rows][:, columns], capacity[columns], lower[columns])


@given(problems(), st.integers(-1000, 1000), st.integers(0, 11))
def test_a_constant_on_one_point(problem, constant, row):
    costs, lower, capacity = problem
    if row < len(costs):
        more = costs.copy()
        more[row] += constant
        assert total(more, capacity, lower) == total(costs, capacity, lower) + constant


@given(problems(), st.integers(1, 10**9))
def test_a_factor(problem, factor):
    costs, lower, capacity = problem
    assert total(factor * costs, capacity, lower) == factor * total(costs, capacity, lower)


@given(problems(), st.lists(st.floats(-1e300, 1e300), min_size=6, max_size=6))
def test_any_prices_to_start_from(problem, prices):
    costs, lower, capacity = problem
    assert total(costs, capacity, lower, prices=prices[: capacity.size]) == total(costs, capacity, lower)


@given(problems())
def test_more_room_costs_no_more_and_narrower_bounds_no_less(problem):
    costs, lower, capacity = problem
    here = total(costs, capacity, lower)
    assert total(costs, capacity + 1, lower) <= here
    assert total(costs, capacity, None) <= here


@given(problems())
def test_lower_bounds_of_zero_are_no_bounds(problem):
    costs, _, capacity = problem
    answer = balanced_assignment(costs, capacity, lower=np.zeros(capacity.size, dtype=int))
    assert answer.scaled_cost == total(costs, capacity, None)
    assert (answer.scaled_prices >= 0).all()


@given(problems(), st.integers(-900, 900))
def test_reals_of_any_size_are_as_good_as_integers(problem, power):
    """Small integers times a power of two lose nothing in scaling."""
    costs, lower, capacity = problem
    real = np.ldexp(costs.astype(float), power)
    answer = balanced_assignment(real, capacity, lower=lower)
    answer.check(real)
    assert answer.cost == np.ldexp(float(total(costs, capacity, lower)), power)


@given(problems())
def test_nothing_that_is_given_changes(problem):
    given_arrays = [array.copy() for array in problem]
    costs, lower, capacity = problem
    balanced_assignment(costs, capacity, lower=lower, prices=np.ones(capacity.size))
    for array, before in zip(problem, given_arrays, strict=True):
        assert np.array_equal(array, before)


@given(problems(most=1), st.lists(st.sampled_from((-1e300, 0.0, 1e300)), min_size=6, max_size=6))
def test_the_largest_costs_that_the_rule_allows(problem, prices):
    """Every cost is that large, or zero, and prices start as far off as they are let."""
    costs, lower, capacity = problem
    most = largest_cost(*costs.shape)
    warm = total(most * costs, capacity, lower, prices=prices[: capacity.size])
    assert warm == most * total(costs, capacity, lower)
