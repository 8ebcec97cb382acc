"""Expert placement: worked examples, tiny layers by trying everything, bounds, and what a batch makes active."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.locality.placement import (
    activation_chances,
    draw_active,
    greedy_placement,
    load_bounds,
    most_active,
    placement_of,
    placement_problem,
    rank_loads,
    rounding_cost,
)
from lbopt.solvers import solve, verify


def least_by_trying(weights, num_ranks):
    """The least largest load of all placements, one by one."""
    if num_ranks == 1:
        return sum(weights)
    room, best = len(weights) // num_ranks, float("inf")
    for others in combinations(range(1, len(weights)), room - 1):  # the rank of the first expert
        chosen = {0, *others}
        rest = [w for e, w in enumerate(weights) if e not in chosen]
        best = min(best, max(sum(weights[e] for e in chosen), least_by_trying(rest, num_ranks - 1)))
    return best


def least_by_solving(weights, num_ranks, scale=1, tie="any"):
    problem = placement_problem(weights, num_ranks, scale)
    answer = solve(problem, tie=tie)
    assert answer.proved
    assert verify(problem, answer).bound_established
    return rank_loads(weights, placement_of(answer.assignment, num_ranks), num_ranks)


@st.composite
def layers(draw, most=20):
    num_ranks, room = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    count = num_ranks * room
    return draw(st.lists(st.integers(0, most), min_size=count, max_size=count)), num_ranks


@pytest.mark.parametrize(
    ("weights", "greedy", "optimum"),
    [((9, 8, 7, 6, 5, 1), 20, 18), ((10, 9, 8, 2, 1, 0), 17, 17), ((8, 6, 2, 2, 1, 1), 11, 10)],
)
def test_the_worked_examples_of_the_eldr_sheet(weights, greedy, optimum):
    assert rank_loads(weights, greedy_placement(weights, 2), 2).max() == greedy
    assert least_by_trying(weights, 2) == optimum
    assert least_by_solving(weights, 2).max() == optimum


def test_greedy_places_as_the_sheet_says_and_breaks_ties_downwards():
    assert greedy_placement((9, 8, 7, 6, 5, 1), 2).tolist() == [0, 1, 1, 0, 0, 1]
    assert greedy_placement((10, 9, 8, 2, 1, 0), 2).tolist() == [0, 1, 1, 0, 0, 1]
    assert greedy_placement((1, 1, 1, 1), 2).tolist() == [0, 1, 0, 1]


@settings(max_examples=60, deadline=None)
@given(layers())
def test_exact_as_trying_everything_between_the_bounds_and_greedy(layer):
    weights, num_ranks = layer
    least = least_by_trying(weights, num_ranks)
    assert least_by_solving(weights, num_ranks).max() == least
    assert max(load_bounds(weights, num_ranks)) <= least + 1e-9
    assert rank_loads(weights, greedy_placement(weights, num_ranks), num_ranks).max() >= least


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 4, 8]), st.sampled_from([10, 10**3, 10**5]))
def test_rounding_costs_no_more_than_is_said(seed, num_ranks, scale):
    weights = np.random.default_rng(seed).random(8)
    least = least_by_trying(weights.tolist(), num_ranks)
    found = least_by_solving(weights, num_ranks, scale).max()
    assert least - 1e-12 <= found <= least + rounding_cost(8, num_ranks, scale) + 1e-12


def rest_by_swaps(weights, ranks, num_ranks):
    """Swap pairs as long as the sorted loads get less, heaviest first."""

    def loads(place):
        return sorted(rank_loads(weights, place, num_ranks).tolist(), reverse=True)

    better = True
    while better:
        better = False
        for a, b in combinations(range(len(weights)), 2):
            swapped = ranks.copy()
            swapped[[a, b]] = swapped[[b, a]]
            if loads(swapped) < loads(ranks):
                ranks, better = swapped, True
    return ranks


@settings(max_examples=60, deadline=None)
@given(layers(), st.randoms(use_true_random=False))
def test_where_no_swap_evens_the_loads_they_differ_by_one_expert_at_most(layer, random):
    weights, num_ranks = layer
    start = np.repeat(np.arange(num_ranks), len(weights) // num_ranks)
    random.shuffle(start)
    loads = rank_loads(weights, rest_by_swaps(weights, start, num_ranks), num_ranks)
    assert loads.max() - loads.min() <= max(weights)


@settings(max_examples=30, deadline=None)
@given(layers())
def test_the_most_even_optimum_has_no_swap_left(layer):
    weights, num_ranks = layer
    loads = least_by_solving(weights, num_ranks, tie="leximax")
    assert loads.max() - loads.min() <= max(weights)


def test_the_swap_trap():
    """Two ranks tied at the top: no swap lowers the maximum, yet the gap exceeds the largest weight."""
    weights, ranks = [5, 3, 1, 1, 4, 4], np.array([0, 0, 1, 1, 2, 2])
    for a, b in combinations(range(6), 2):
        swapped = ranks.copy()
        swapped[[a, b]] = swapped[[b, a]]
        assert rank_loads(weights, swapped, 3).max() >= 8
    assert sorted(rank_loads(weights, rest_by_swaps(weights, ranks, 3), 3)) != [2, 8, 8]


def test_ranks_are_numbered_by_their_lowest_expert():
    for names in permutations(range(3)):
        assignment = np.array(names)[[0, 1, 1, 2, 0, 2]]
        assert placement_of(assignment, 3).tolist() == [0, 1, 1, 2, 0, 2]


def test_chances_are_those_of_a_batch():
    """Against the sum over all batches of two and three of three requests."""
    decode = np.random.default_rng(0).random((3, 2, 4))
    for batch in (1, 2, 3):
        rows = np.stack(np.meshgrid(*[range(3)] * batch)).reshape(batch, -1)
        expected = 1 - np.prod(1 - decode[rows], axis=0).mean(axis=0)
        assert activation_chances(decode, batch) == pytest.approx(expected)
    always = np.ones((2, 3))
    assert activation_chances(always, 5).tolist() == [1, 1, 1]
    assert activation_chances(0 * always, 5).tolist() == [0, 0, 0]


def test_drawn_steps_are_active_as_often_as_the_chances_say():
    rng = np.random.default_rng(1)
    decode = rng.dirichlet(np.ones(12), 20) * 3
    decode = np.clip(decode, 0, 1)
    decode[:, 0] += 3 - decode.sum(axis=1)
    decode = decode[decode[:, 0] <= 1]
    assert (draw_active(decode, 1, 200, rng).sum(axis=1) == 3).all()  # a request chooses exactly k
    draws = 4000
    seen, chances = draw_active(decode, 4, draws, rng).mean(axis=0), activation_chances(decode, 4)
    assert (np.abs(seen - chances) <= 5 * np.sqrt(chances * (1 - chances) / draws) + 1e-12).all()


def test_the_mean_of_the_busiest_rank_is_no_less_than_the_busiest_mean():
    rng = np.random.default_rng(2)
    active = rng.random((500, 12)) < rng.random(12)
    ranks = np.repeat(np.arange(3), 4)
    means = rank_loads(active.mean(axis=0), ranks, 3)
    busiest = most_active(active, ranks, 3)
    assert busiest.mean() >= means.max()
    assert busiest.tolist() == [max(row[:4].sum(), row[4:8].sum(), row[8:].sum()) for row in active.astype(int)]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: greedy_placement([1, 2, 3, 4, 5, 6], 4),
            "6 experts cannot be spread evenly over 4 ranks; .* 1, 2, 3, 6",
        ),
        (lambda: greedy_placement([1, 2], 0), "num_ranks is 0"),
        (
            lambda: greedy_placement([1, np.nan], 2),
            "the weight of expert 1 is nan; expected a finite number, 0 or more",
        ),
        (lambda: greedy_placement([1, -2], 2), "the weight of expert 1 is -2.0"),
        (lambda: greedy_placement([[1, 2]], 2), r"weights have shape \(1, 2\)"),
        (lambda: placement_problem([1, 2], 2, 0), "scale is 0"),
        (lambda: placement_problem([1, 2], 2, 10**18), r"beyond 2\*\*62; take a scale of at most [\d,]+$"),
        (lambda: placement_of(None, 2), "found no assignment; give it more time"),
        (lambda: placement_of([0, -1], 2), "every expert needs one"),
        (lambda: placement_of([0, 0], 2), "rank 0 holds 2 experts; expected 1 on each of 2 ranks"),
        (lambda: placement_of([0.5, 1], 2), "holds float64 values"),
        (lambda: rank_loads([1, 2], [0, 2], 2), "expected 0 to 1 for each of 2 experts"),
        (lambda: activation_chances([[0.5, 1.5]], 4), r"decode\[0, 1\] is 1.5; expected a share of steps, 0 to 1"),
        (lambda: activation_chances(np.zeros((0, 4)), 4), r"decode has shape \(0, 4\)"),
        (lambda: activation_chances([[0.5, 0.5]], 0), "batch is 0"),
        (lambda: draw_active(np.zeros((1, 2, 3)), 1, 1, np.random.default_rng()), "requests of one layer"),
    ],
)
def test_one_clear_sentence(call, says):
    with pytest.raises(InputError, match=says) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_rounding_may_cost_more_than_half_of_what_is_said():
    weights = np.array([1.49] * 4 + [0.51] * 12)  # all of them 1 in integers, so that any placement is a best one
    problem = placement_problem(weights, 4, 1)
    assert set(problem.work[:, 0]) == {1}
    together, apart = np.repeat(range(4), 4), np.tile(range(4), 4)
    excess = rank_loads(weights, together, 4).max() - rank_loads(weights, apart, 4).max()
    assert rounding_cost(16, 4, 1) / 2 < excess <= rounding_cost(16, 4, 1)


def test_any_experts_of_a_request_may_be_active_together():
    active = draw_active(np.full((1, 4), 0.5), 1, 400, np.random.default_rng(0))
    assert (active.sum(axis=1) == 2).all()
    assert len({tuple(np.flatnonzero(step)) for step in active}) == 6
