"""Certificates of the kind "window-prices": true bounds are accepted, whatever else is done to a certificate is not."""

import copy
import random

import pytest
from solvers.certificates.damage import damaged
from solvers.known_ends.ends_problems import random_ends

from lbopt import CertificateError, StepProblem, solve
from lbopt.solvers.certificates import Certificate, check
from lbopt.solvers.exact import written_known_ends_proof

pytestmark = pytest.mark.jit


def accepted(problem, certificate):
    try:
        return check(problem, certificate)
    except CertificateError:
        return None


def problems(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        yield random_ends(rng, top=rng.choice([1, 3, 10, 50, 1000, 10**5, 10**9])), rng


def test_true_bounds_are_accepted_and_raised_ones_refused():
    branches, strikes = 0, 0
    for problem, rng in problems(1, 200):
        best = solve(problem, "brute-force").objective
        for bound in {best, rng.randint(0, best)}:
            certificate = written_known_ends_proof(problem, bound)
            assert check(problem, Certificate.from_json(certificate.to_json())) == bound
            branches += any("worker" in record for record in certificate.body["tree"])
            strikes += bool(certificate.body["strikes"])
        for raised in (best + 1, best + rng.randint(1, 50)):
            assert accepted(problem, Certificate(problem.digest, "window-prices", raised, certificate.body)) is None
    assert branches > 20
    assert strikes > 20


def test_a_damaged_certificate_proves_nothing_false():
    """Whatever is changed, no bound above the optimum is ever accepted; most changes break the true bound as well."""
    broken, tried = 0, 0
    for problem, rng in problems(2, 100):
        best = solve(problem, "brute-force").objective
        certificate = written_known_ends_proof(problem, best)
        for _ in range(15):
            body = copy.deepcopy(certificate.body)
            for _ in range(rng.choice([1, 1, 3])):
                name = rng.choice(["tree", "tree", "tree", "strikes", "scale"])
                body[name] = damaged(body[name], rng)
            assert accepted(problem, Certificate(problem.digest, certificate.kind, best + 1, body)) is None
            if best > 0:
                tried += 1
                broken += accepted(problem, Certificate(problem.digest, certificate.kind, best, body)) is None
    assert broken > tried // 3


PAIR = StepProblem.known_ends([100, 0, 40], [1, 2, 1], [10, 30, 50, 70, 90], [1, 3, 2, 9, 1], 2, active=[3, 1, 2])


def test_refusals_say_what_is_wrong():
    best = solve(PAIR, "brute-force").objective
    certificate = written_known_ends_proof(PAIR, best)

    def refused(bound=best, **body):
        with pytest.raises(CertificateError) as caught:
            check(PAIR, Certificate(PAIR.digest, "window-prices", bound, {**certificate.body, **body}))
        return str(caught.value)

    fair = {"loads": [[g, h, 1] for g in range(3) for h in range(3)], "classes": []}
    assert f"{best + 1} is claimed" in refused(best + 1)
    assert "1 cases are open" in refused(tree=[])
    assert "complete after" in refused(tree=[*certificate.body["tree"], fair])
    assert "scale is 0" in refused(scale=0)
    assert "add up to 0; expected 3 * 1" in refused(scale=1, strikes=[], tree=[{"loads": [], "classes": []}])
    assert "strike 0" in refused(strikes=[{"loads": [], "classes": []}])
    assert "may wait" in refused(scale=1, strikes=[], tree=[{**fair, "classes": [[0, 1]]}])
    assert "nothing costs less" in refused(scale=1, strikes=[], tree=[fair])
    assert "from 0 to 2" in refused(tree=[{"worker": 7, "class": 0, "at_most": 0}])
    assert "from 0 to 4" in refused(tree=[{"worker": 0, "class": 5, "at_most": 0}])
    assert "expected an object" in refused(tree=[17])
    assert "unknown field" in refused(tree=[{**fair, "why": 1}])


def test_a_certificate_of_another_problem_is_refused():
    certificate = written_known_ends_proof(PAIR, 1)
    other = StepProblem(PAIR.base + 1, PAIR.slots, PAIR.work + 1)
    with pytest.raises(CertificateError, match="it is of problem"):
        check(other, certificate)
