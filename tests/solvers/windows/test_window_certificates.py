"""Certificates of window searches: true bounds are accepted, whatever else is done to a certificate is not."""

import ast
import copy
import random
from pathlib import Path

import pytest
from solvers.certificates.damage import damaged
from solvers.windows.window_problems import random_window

from lbopt import CertificateError, StepProblem
from lbopt.solvers import recount
from lbopt.solvers.certificates import Certificate, check, windows
from lbopt.solvers.exact import written_window_proof

pytestmark = pytest.mark.jit


def optimum(problem):
    return recount.exhaust(recount.Numbers.of(problem), 10**7)[()][0]


def with_body(certificate, bound, **body):
    return Certificate(certificate.problem_digest, certificate.kind, bound, {**certificate.body, **body})


def accepted(problem, certificate):
    try:
        return check(problem, certificate)
    except CertificateError:
        return None


def problems(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        yield random_window(rng, top=rng.choice([1, 3, 10, 50, 1000, 10**5])), rng


def test_true_bounds_are_accepted_and_raised_ones_refused():
    kinds = set()
    for problem, rng in problems(1, 250):
        best = optimum(problem)
        for bound in {best, rng.randint(0, best)}:
            certificate = written_window_proof(problem, bound)
            again = Certificate.from_json(certificate.to_json())
            assert check(problem, again) == bound
            kinds |= {name for record in certificate.body["tree"] for name in record}
        certificate = written_window_proof(problem, best)
        for raised in (best + 1, best + rng.randint(1, 50)):
            assert accepted(problem, with_body(certificate, raised)) is None
    assert {"prices", "totals", "sizes", "contradiction", "empty", "sets"} <= kinds


def test_a_damaged_certificate_proves_nothing_false():
    """Whatever is changed, no bound above the optimum is ever accepted; most changes break the true bound as well."""
    broken, tried = 0, 0
    for problem, rng in problems(2, 120):
        best = optimum(problem)
        certificate = written_window_proof(problem, best)
        for _ in range(15):
            body = copy.deepcopy(certificate.body)
            for _ in range(rng.choice([1, 1, 3])):
                name = rng.choice(["tree", "tree", "tree", "cuts", "scale"])
                body[name] = damaged(body[name], rng)
            assert accepted(problem, Certificate(problem.digest, certificate.kind, best + 1, body)) is None
            if best > 0:
                tried += 1
                broken += accepted(problem, Certificate(problem.digest, certificate.kind, best, body)) is None
    assert broken > tried // 2


PAIR = StepProblem.survives([100, 0, 40], [1, 2, 1], [10, 30, 50, 70, 90], 2, active=[3, 1, 2])


def test_refusals_say_what_is_wrong():
    best = optimum(PAIR)
    certificate = written_window_proof(PAIR, best)
    tree = certificate.body["tree"]

    def refused(bound=best, **body):
        with pytest.raises(CertificateError) as caught:
            check(PAIR, with_body(certificate, bound, **body))
        return str(caught.value)

    assert f"{best + 1} is claimed" in refused(best + 1)
    assert "1 cases are open" in refused(tree=[])
    assert "complete after" in refused(tree=[*tree, {"empty": True}])
    assert "scale is 0" in refused(scale=0)
    assert "is not empty" in refused(tree=[{"empty": True}])
    assert "no contradiction" in refused(tree=[{"contradiction": []}])
    assert "may still have totals" in refused(tree=[{"sets": True}])
    assert "add up to 0; expected 3 * " in refused(tree=[{"prices": [], "cuts": []}])
    assert "none of the ranges" in refused(tree=[{"worker": 0, "totals": [[0, 20]]}, {"empty": True}])
    assert "no range holds" in refused(tree=[{"worker": 0, "position": 0, "sizes": [[0, 20]]}, {"empty": True}])
    assert "whole number from 0 to 0" in refused(tree=[{"worker": 0, "position": 1, "sizes": []}])
    assert "no free slots" in refused(tree=[{"worker": 7, "totals": []}])
    assert "cut 0 names a worker twice" in refused(cuts=[{"workers": [0, 0], "at_most": True}])
    assert "expected an object" in refused(tree=[17])
    assert "unknown field" in refused(tree=[{"empty": True, "why": 1}])


def test_windows_of_another_kind_have_no_such_certificate():
    ends = StepProblem.known_ends([0, 5], [1, 1], [3, 4, 5], [1, 2, 3], 2)
    short = StepProblem.survives([0, 5], [2, 2], [3, 4, 5], 2)
    for problem, why in ((ends, "different profiles"), (short, "stay empty")):
        with pytest.raises(CertificateError, match=why):
            check(problem, Certificate(problem.digest, "window-boxes", 1, {"scale": 1, "cuts": [], "tree": []}))


def test_the_checker_imports_nothing_of_the_search():
    """The standard library, `recount`, exceptions and its own room: no NumPy, no Numba, no kernels."""
    for name in ("windows", "window_box"):
        source = (Path(windows.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for module in names:
                if module.startswith("lbopt"):
                    assert module == "lbopt.exceptions" or module.startswith(
                        ("lbopt.solvers.certificates", "lbopt.solvers.allowance", "lbopt.solvers.recount")
                    )
                else:
                    assert not module.startswith(("num", "scipy"))
