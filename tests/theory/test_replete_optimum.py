"""The closed form is the optimum wherever the search is asked, and a closed form that misses by one is caught."""

import pytest

from lbopt.exceptions import InputError
from lbopt.theory.claims import lemma_2_steps
from lbopt.theory.claims.lemma_2_steps import measure_optimum as measure
from lbopt.theory.finding import Verdict, gravest

jit = pytest.mark.jit


@jit
@pytest.mark.parametrize("claim", lemma_2_steps._CLOSED_FORM, ids=lambda claim: claim.name)
def test_the_quick_verdict_is_the_expected_one(claim):
    findings = [finding for regime in claim.quick for finding in claim.measure(seed=1, **regime)]
    assert gravest(finding.verdict() for finding in findings) == claim.expected
    assert not any(finding.undecided for finding in findings)


@jit
@pytest.mark.parametrize("wrong", ["cost", "loads"])
def test_a_closed_form_that_misses_by_one_is_caught(monkeypatch, wrong):
    true = lemma_2_steps.level

    def missing(*args, **options):
        cost, loads = true(*args, **options)
        if wrong == "cost":
            return cost + 1, loads
        loads[0] += 1
        return cost, loads

    monkeypatch.setattr(lemma_2_steps, "level", missing)
    assert {finding.verdict() for finding in measure(steps=5, seed=0)} == {Verdict.REFUTED}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"G": 1}, "replete-optimum assumes at least G = 2 workers; G is 1"),
        ({"c_max": 0}, "c_max is 0"),
        ({"pool": "odd"}, "pool is 'odd'"),
        ({"spread": -1}, "spread is -1"),
        ({"steps": 0}, "steps is 0"),
        ({"time_limit": 0.0}, "time_limit is 0.0"),
        ({"G": 256, "c_max": 100}, "there are 51,200"),
    ],
)
def test_what_it_refuses(wrong, says):
    with pytest.raises(InputError, match=says):
        measure(seed=0, **wrong)
