"""Forged certificates and results of every sort: none is believed above the optimum, none ends in another error."""

import json
from collections import Counter

import pytest
from lengths import quick_and_long
from naive.step_optimum import least_imbalance
from solvers.reliability.certificates import forge, proof_of
from solvers.reliability.proofs import SORTS

from lbopt import CertificateError, StepProblem
from lbopt.solvers.certificates import KINDS, Certificate, check

pytestmark = pytest.mark.jit


@pytest.mark.parametrize("forgeries", quick_and_long(40, 80))
@pytest.mark.parametrize("sort", SORTS)
def test_no_forgery_is_believed(sort, forgeries):
    seen: Counter = Counter()
    for number in range(forgeries):
        wrong = forge("0", sort, number, seen, each=20)
        assert wrong is None, wrong
    assert seen[f"{sort}: forgeries"] == forgeries
    assert seen[f"{sort}: refused"] > forgeries / 2
    honest = proof_of(sort, "0/0")
    assert honest.certificate is None or check(honest.problem, honest.certificate) == honest.optimum


@pytest.mark.parametrize("sort", ["priced envelopes", "boxes", "known ends"])
def test_a_checker_that_believes_everything_is_noticed(sort, monkeypatch):
    kind = proof_of(sort, "0/0").certificate.kind
    monkeypatch.setitem(KINDS, kind, lambda numbers, bound, body: None)
    assert any(forge("0", sort, number, Counter(), each=20) for number in range(40))


FLAT = StepProblem([[9, 8], [4, 4]], [2**62, 3], [[5], [3]])
STEP = StepProblem.now([9, 4], [2**62, 3], [5, 3])


@pytest.mark.parametrize(
    ("problem", "kind", "tree"),
    [
        (STEP, "priced-envelopes", None),
        (STEP, "priced-envelopes", [{"prices": 0}]),
        (STEP, "priced-envelopes", [{"dead": [0]}]),
        (STEP, "priced-envelopes", [{"worker": 0, "patterns": []}]),
        (FLAT, "window-boxes", [{"empty": True}]),
        (FLAT, "window-boxes", [{"worker": 0, "position": 2**61, "sizes": [[0, 5]]}]),
        (FLAT, "window-prices", [{"loads": [[0, 0, 2], [0, 1, 2]], "classes": []}]),
    ],
)
def test_slots_without_number_cost_the_checker_nothing(problem, kind, tree):
    """They once took it all memory, or all time: each slot had an entry of its own."""
    body = {
        "priced-envelopes": {
            "scale": 1,
            "prices": [[]],
            "nodes": [{"envelopes": [0, 2**62], "prices": 0} | ({} if tree is None else {"tree": tree})],
        },
        "window-boxes": {"scale": 1, "cuts": [], "tree": tree},
        "window-prices": {"scale": 1, "strikes": [], "tree": tree},
    }[kind]
    numbers = problem.to_dict()
    optimum = least_imbalance(numbers["base"], numbers["slots"], numbers["work"], numbers["must_admit"])
    with pytest.raises(CertificateError) as caught:
        check(problem, Certificate.from_json(Certificate(problem.digest, kind, optimum + 1, body).to_json()))
    assert len(str(caught.value)) < 300
    assert json.dumps(body)
