"""Trees of placements on a few small problems, also as plain Python; solvers/exact/test_placements.py has many."""

import pytest
from kernels.rules import many
from planted import plant_tree, proved_by_trees
from solvers.certificates.naive_problem import optimum
from solvers.exact.test_placements import least_cost, problems, tight

from lbopt import solve
from lbopt.kernels.search.placement_tree import NO_ROOM, try_tree
from lbopt.solvers.certificates import check
from lbopt.solvers.exact.decision import Decision

pytestmark = pytest.mark.more


def test_trees_alone_find_the_optimum():
    for problem in problems(3 * 10**5, many(40, 12), workers=3, requests=6):
        assert least_cost(problem) == optimum(problem), problem.to_json()


def test_what_they_write_is_a_proof():
    placements = 0
    small = [(problem, optimum(problem)) for problem in problems(4 * 10**5, many(60, 40), workers=4, requests=8)]
    larger = [(problem, solve(problem, "search").objective) for problem in map(tight, (16, 24, 31, 33))]
    for problem, best in small + larger:
        if best:
            certificate = proved_by_trees(problem, best)
            assert check(problem, certificate) == best
            records = [record for node in certificate.body["nodes"] for record in node.get("tree", ())]
            placements += sum("class" in record for record in records)
    assert placements > 3


@pytest.mark.jit
def test_where_the_table_of_nodes_is_full_the_tree_says_so():
    """Nothing is ruled out that could not be written down."""
    problem = tight(33)
    decision = Decision(problem)
    search = decision.start(solve(problem, "search").objective)
    step, masters = decision.step, decision.masters
    tree = masters.tree
    search.bank[0, : step.v.size] = step.floor
    search.known.prices = search.known.newest = 1
    plant_tree(search, masters, 395)
    tree.state.used = tree.nodes.size - step.load.size - 1  # one too few for all ways of a class
    assert try_tree(step, search, masters, 0, 10) == NO_ROOM
    assert tree.nodes[0].reach > 0 and search.ranges[0].bound < search.known.cost
