"""Balanced assignment beside networkx' network simplex, another algorithm by other people, on tiny instances."""

import numpy as np
import pytest
from assignment.problems import problems
from hypothesis import given, settings

from lbopt.assignment import balanced_assignment

networkx = pytest.importorskip("networkx")


def cheapest_by_simplex(costs, lower, capacity):
    """The least total: points supply one unit, centres demand their lower bound, and a sink takes the rest."""
    points, centres = costs.shape
    graph = networkx.DiGraph()
    for i in range(points):
        graph.add_node(("point", i), demand=-1)
    for k in range(centres):
        graph.add_node(("centre", k), demand=int(lower[k]))
        graph.add_edge(("centre", k), "rest", capacity=int(capacity[k] - lower[k]), weight=0)
    graph.add_node("rest", demand=points - int(lower.sum()))
    for i, k in np.ndindex(points, centres):
        graph.add_edge(("point", i), ("centre", k), capacity=1, weight=int(costs[i, k]))
    return networkx.network_simplex(graph)[0]


@settings(max_examples=150, deadline=None)
@given(problems())
def test_as_the_network_simplex(problem):
    costs, lower, capacity = problem
    answer = balanced_assignment(costs, capacity, lower=lower)
    answer.check(costs)
    assert answer.scaled_cost == cheapest_by_simplex(costs, lower, capacity)


@settings(max_examples=100, deadline=None)
@given(problems(most=2))
def test_as_the_network_simplex_where_ties_abound(problem):
    costs, lower, capacity = problem
    answer = balanced_assignment(costs, capacity, lower=lower)
    answer.check(costs)
    assert answer.scaled_cost == cheapest_by_simplex(costs, lower, capacity)
