"""Balanced assignment: each of N points to one of K centres, within bounds on their counts, at least total cost.

Algorithm: successive shortest paths on a network of K + 1 nodes (`lbopt.kernels.assignment.paths`), whose arcs keep
their cheapest moves in short lists (`.moves`), from prices that coarser samples gave (`levels`), in exact integers
(`scale`). The linear program of the problem has integral vertices (its matrix is that of a bipartite graph), so its
dual prices prove an assignment of points optimal: `BalancedAssignment.check`. Source: ELDR, section 4 (sub-step of
balanced K-means, Malinen and Franti 2014, who use the Hungarian method on N slots).

Pairs may be forbidden: the network then has no such arcs, and no large cost stands for them. Where no assignment keeps
the bounds, a set of points and centres shows why (`shortage`). Costs that do not fit into memory are read by blocks
(`by_blocks`).
"""

from __future__ import annotations

from typing import Any

from lbopt.assignment.bounds import checked_bounds
from lbopt.assignment.by_blocks import assigned_by_blocks
from lbopt.assignment.cost_blocks import CostBlocks
from lbopt.assignment.level import Room
from lbopt.assignment.result import BalancedAssignment
from lbopt.assignment.scale import scaled_pairs
from lbopt.assignment.settling import frozen, reachable, scaled_prices, settled


def balanced_assignment(costs: Any, capacity: Any, *, lower: Any = None, prices: Any = None) -> BalancedAssignment:
    """Assign every point to a centre at least total cost.

    Parameters
    ----------
    costs
        (N, K) integers, or reals that `scale_costs` turns into integers; any sign. A pair that is masked (in a NumPy
        masked array) or costs +infinity is forbidden. `Candidates` and SciPy's sparse arrays hold the pairs that may be
        used, and forbid all others; `CostBlocks` are read a block at a time and never held whole.
    capacity
        Most points of a centre: (K,) integers, or one for all.
    lower
        Fewest points of a centre: (K,) integers, or one for all; none by default.
    prices
        (K,) reals in the unit of the costs to start from, such as those of a similar problem. The total is the same
        whatever they are; good ones save time.

    Raises
    ------
    NoAssignmentError
        An `InputError`: if no assignment of allowed pairs keeps the bounds; its `shortage` proves it.
    InputError
        If costs are NaN, -infinity or too large, shapes do not match, or capacities do not suffice for all points.

    Warns
    -----
    UserWarning
        If costs that are not zero become zero, because others are so large: how many.
    """
    if isinstance(costs, CostBlocks):
        points, centres = costs.shape
        least, most = checked_bounds(capacity, lower, points, centres)
        return assigned_by_blocks(costs, least, most, prices)
    pairs, exponent = scaled_pairs(costs)
    least, most = checked_bounds(capacity, lower, pairs.points, pairs.centres)
    start = None if prices is None else scaled_prices(prices, exponent, pairs.centres)
    return frozen(settled(pairs, least, reachable(most, pairs.points), start, Room()), exponent, most, least)
