"""Trees of placements on a few small problems, also as plain Python; solvers/exact/test_placements.py has many."""

from kernels.rules import many
from solvers.certificates.naive_problem import optimum
from solvers.exact.test_placements import least_cost, problems, with_poor_prices

from lbopt.kernels.search.placement_tree import grow_tree
from lbopt.model import StepProblem
from lbopt.solvers.certificates import check
from lbopt.solvers.exact import proof
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.workspace import plant_tree


def test_trees_alone_find_the_optimum():
    for problem in problems(3 * 10**5, many(40, 12), workers=3, requests=6):
        assert least_cost(problem) == optimum(problem), problem.to_json()


def test_what_they_write_is_a_proof(monkeypatch):
    monkeypatch.setattr(proof, "_FEW_RECORDS", -1)
    monkeypatch.setattr(proof._Writer, "_solve", lambda self, M: self.found_at.update({0: M}))
    placements = 0
    for problem in problems(4 * 10**5, many(60, 40), workers=4, requests=8):
        best = optimum(problem)
        if best:
            certificate = with_poor_prices(problem, best)
            assert check(problem, certificate) == best
            records = [record for node in certificate.body["nodes"] for record in node.get("tree", ())]
            placements += sum("class" in record for record in records)
    assert placements > 3


def test_where_the_table_of_nodes_is_full_the_node_above_stays_open():
    """Nothing is ruled out that could not be written down."""
    problem = StepProblem.now([2, 3, 4], [3, 3, 3], [5, 3, 5, 8, 8, 7, 2, 3, 4, 8])
    decision = Decision(problem)
    search = decision.start(1 << 40)
    step, masters = decision.step, decision.masters
    tree = masters.tree
    search.bank[0, : step.v.size] = step.floor
    search.known.prices = 1
    for room in (4, 3, 0):  # the root has four ways to go on at this envelope
        plant_tree(search, masters, 17)
        search.known.warm = 0
        tree.nodes.range[1:] = -1  # of no range that is worked on
        tree.state.used = tree.nodes.size - room
        assert grow_tree(step, search, masters, 0)
        assert tree.state.chosen >= 0
        assert tree.state.used == tree.nodes.size
        assert (tree.nodes[0].reach >= 0) == (room < 4)
