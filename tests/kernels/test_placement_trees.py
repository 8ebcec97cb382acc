"""Trees of placements on a few small problems, also as plain Python; solvers/exact/test_placements.py has many."""

import pytest
from kernels.rules import many
from solvers.certificates.naive_problem import optimum
from solvers.exact.test_placements import least_cost, problems, tight, with_poor_prices

from lbopt import solve
from lbopt.kernels.search.placement_tree import grow_tree
from lbopt.solvers.certificates import check
from lbopt.solvers.exact import proof
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.workspace import plant_tree


def test_trees_alone_find_the_optimum():
    for problem in problems(3 * 10**5, many(40, 12), workers=3, requests=6):
        assert least_cost(problem) == optimum(problem), problem.to_json()


def test_what_they_write_is_a_proof(monkeypatch):
    monkeypatch.setattr(proof._Writer, "_solve", lambda self, M: self.found_at.update({0: M}))
    placements = 0
    small = [(problem, optimum(problem)) for problem in problems(4 * 10**5, many(60, 40), workers=4, requests=8)]
    larger = [(problem, solve(problem, "search").objective) for problem in map(tight, (16, 24, 31, 33))]
    for problem, best in small + larger:
        if best:
            certificate = with_poor_prices(problem, best)
            assert check(problem, certificate) == best
            records = [record for node in certificate.body["nodes"] for record in node.get("tree", ())]
            placements += sum("class" in record for record in records)
    assert placements > 3


@pytest.mark.jit
def test_where_the_table_of_nodes_is_full_the_node_above_stays_open():
    """Nothing is ruled out that could not be written down."""
    problem = tight(33)
    decision = Decision(problem)
    search = decision.start(solve(problem, "search").objective)
    step, masters = decision.step, decision.masters
    tree = masters.tree
    search.bank[0, : step.v.size] = step.floor
    search.known.prices = 1
    for room in (3, 2, 0):  # the root has three ways to go on at this envelope
        plant_tree(search, masters, 395)
        search.known.warm = 0
        tree.nodes.range[1:] = -1  # of no range that is worked on
        tree.state.used = tree.nodes.size - room
        assert grow_tree(step, search, masters, 0)
        assert tree.state.chosen >= 0
        assert tree.state.used == tree.nodes.size
        assert (tree.nodes[0].reach >= 0) == (room < 3)
