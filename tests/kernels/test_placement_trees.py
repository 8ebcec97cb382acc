"""Trees of placements on a few small problems, also as plain Python; solvers/exact/test_placements.py has many."""

from kernels.rules import many
from solvers.certificates.naive_problem import optimum
from solvers.exact.test_placements import least_cost, problems, with_poor_prices

from lbopt.solvers.certificates import check
from lbopt.solvers.exact import proof


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
