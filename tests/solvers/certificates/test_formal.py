"""The verified checker beside the one in Python: what Python accepts it accepts, and it accepts nothing false."""

import random
import time
from dataclasses import replace

import pytest
from solvers.certificates.formal_cases import FORMS, Case, damaged_cases, forged_cases, true_cases
from solvers.certificates.pattern_records import branch, dead

from lbopt import StepProblem, solve
from lbopt.exceptions import CertificateError, InputError
from lbopt.model import Conditions
from lbopt.solvers.certificates import Certificate, check, priced_envelopes
from lbopt.solvers.certificates.formal import find_checker, formally_accepted, words
from lbopt.solvers.certificates.format import placement, refuted

built = pytest.mark.skipif(find_checker() is None, reason="the verified checker is not built: make proofs")

PROBLEM = StepProblem.now(loads=[3, 0], slots=[1, 1], sizes=[5, 1], must_admit=[True, False])


def accepted_in_python(case):
    try:
        return check(case.problem, case.certificate) == case.certificate.bound
    except CertificateError:
        return False


def accepted_formally(case):
    try:
        return formally_accepted(case.problem, case.certificate)
    except CertificateError:
        return False  # malformed, so that it never reached the checker


@built
@pytest.mark.parametrize("form", FORMS)
def test_true_certificates_are_accepted_by_both(form):
    for case in true_cases(form, 25):
        assert accepted_in_python(case)
        assert formally_accepted(case.problem, case.certificate)


@built
@pytest.mark.parametrize("form", FORMS)
def test_forged_certificates_are_refused_by_both(form):
    for case in forged_cases(form, 25):
        assert case.certificate.bound > case.optimum
        assert not accepted_in_python(case)
        assert not accepted_formally(case)


@built
@pytest.mark.parametrize("form", FORMS)
def test_damaged_certificates(form):
    """What Python accepts the verified checker accepts too, and both accept only what is true."""
    refused = 0
    for case in damaged_cases(form, 30):
        verified = accepted_formally(case)
        assert not verified or case.certificate.bound <= case.optimum
        assert verified >= accepted_in_python(case)
        refused += not verified
    assert refused > 3


def test_the_words():
    """A problem and a certificate with every record, word by word."""
    prices = [[0, 2], [0, 0]]
    tree = [branch(1, [[1], [0]]), dead([0]), placement(0, 1, True, [0]), refuted(1)]
    certificate = priced_envelopes(PROBLEM.digest, 4, 3, prices, [(5, 8, 0, tree), (9, 9, 1, None)])
    assert words(PROBLEM, certificate).splitlines() == [
        "lbopt-formal 1",
        "loads 2 3 0",
        "slots 2 1 1",
        "sizes 2 5 1",
        "must 2 1 0",
        "bound 4",
        "scale 3",
        "vectors 2",
        "vector 2 0 2",
        "vector 0",
        "nodes 2",
        "node 5 8 0 4",
        "branch 1 0 2 pattern 1 1 pattern 1 0",
        "refuted 0",
        "placement 0 1 1 1 0",
        "refuted 1",
        "node 9 9 1 0",
        "end",
    ]


def test_what_the_theorem_does_not_cover_is_refused():
    window = StepProblem.survives([3, 0], [1, 1], [5, 1], 2)
    conditioned = PROBLEM.under(Conditions(pace=[1, 2]))
    for problem in (window, conditioned):
        certificate = priced_envelopes(problem.digest, 0, 1, [], [])
        with pytest.raises(CertificateError, match="covers certificates of kind priced-envelopes at horizon 0"):
            words(problem, certificate)
    other = Certificate(PROBLEM.digest, "window-boxes", 0, {})
    with pytest.raises(CertificateError, match="this one is of kind 'window-boxes' at horizon 0"):
        words(PROBLEM, other)
    with pytest.raises(CertificateError, match="it is of problem 0000…, not"):
        words(PROBLEM, priced_envelopes("0000", 0, 1, [], []))


def test_without_the_program_the_way_to_it_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("LBOPT_CHECKED", str(tmp_path / "absent"))
    with pytest.raises(InputError, match="the verified checker is not built: run `make proofs` in a checkout"):
        formally_accepted(PROBLEM, priced_envelopes(PROBLEM.digest, 0, 1, [], []))


@pytest.mark.parametrize(
    ("code", "said", "sentence"),
    [(2, "malformed: no", "ended with code 2: malformed: no"), (0, "", "ended with code 0: no word")],
)
def test_a_program_that_gives_no_answer(monkeypatch, tmp_path, code, said, sentence):
    program = tmp_path / "checker"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\nprintf '{said}' >&2\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("LBOPT_CHECKED", str(program))
    with pytest.raises(CertificateError, match=sentence):
        formally_accepted(PROBLEM, priced_envelopes(PROBLEM.digest, 0, 1, [], []))


@built
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_thousand_true_and_a_thousand_forged(form):
    """Every true certificate is accepted by both checkers and every forged one refused by both."""
    times = [0.0, 0.0]
    for cases, truth in ((true_cases(form, 1_000), True), (forged_cases(form, 1_000), False)):
        for case in cases:
            for i, accepted in enumerate((accepted_in_python, accepted_formally)):
                started = time.perf_counter()
                assert accepted(case) == truth, (form, case)
                times[i] += time.perf_counter() - started
    print(f"{form}: 1000 accepted, 1000 refused; in Python {times[0]:.1f} s, verified {times[1]:.1f} s")


@built
@pytest.mark.slow
@pytest.mark.jit
def test_five_hundred_certificates_of_the_search():
    """Certificates that `solve` writes, and the same ones with a bound above the optimum.

    Every record of a tree takes the verified checker a table, up to a second: long trees are left out and counted.
    """
    rng = random.Random("search")
    times, trees, checked, left_out = [0.0, 0.0], 0, 0, 0
    while checked < 500:
        top = rng.choice([20, 100, 1000, 4000])
        workers = rng.randint(2, 16)
        problem = StepProblem.now(
            loads=[rng.randrange(6 * top) for _ in range(workers)],
            slots=[rng.randint(0, 4) for _ in range(workers)],
            sizes=[rng.randint(1, top) for _ in range(rng.randint(4, 50))],
        )
        result = solve(problem, solver="exact", time_limit=20.0)
        certificate = result.certificate() if result.proof == "certificate" else None
        if certificate is None or certificate.kind != "priced-envelopes":
            continue
        records = sum(len(node.get("tree", ())) for node in certificate.body["nodes"])
        if records > 100:
            left_out += 1
            continue
        checked += 1
        trees += records > 0
        false = replace(certificate, bound=result.objective + rng.choice([1, 1, rng.randint(1, 100)]))
        for one, truth in ((certificate, True), (false, False)):
            case = Case(problem, one, result.objective, None)
            for i, accepted in enumerate((accepted_in_python, accepted_formally)):
                started = time.perf_counter()
                assert accepted(case) == truth, case
                times[i] += time.perf_counter() - started
    seconds = f"in Python {times[0]:.1f} s, verified {times[1]:.1f} s"
    print(f"search: 500 accepted ({trees} with trees), 500 refused, {left_out} left out; {seconds}")
