"""Lemma 1: the printed form is refuted by examples that hold, the corrected one holds and could have failed."""

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.theory.claims import lemma_1
from lbopt.theory.claims.lemma_1 import PRINTED, STORED, measure_corrected, measure_printed, round_statements
from lbopt.theory.finding import Verdict, gravest
from lbopt.theory.steps.small_step import until, whole_rounds
from lbopt.theory.steps.statements import held_against

pytestmark = pytest.mark.jit


@pytest.mark.parametrize("claim", lemma_1.CLAIMS, ids=lambda claim: claim.name)
def test_the_quick_verdict_is_the_expected_one(claim):
    findings = [finding for regime in claim.quick for finding in claim.measure(seed=1, **regime)]
    assert gravest(finding.verdict() for finding in findings) == claim.expected


def test_the_stored_round_has_the_optima_that_it_is_said_to_have():
    best, found = STORED.optima
    assert best == 18
    assert held_against(PRINTED, "", [STORED]).measured == 8
    assert {tuple(sorted(loads)) for loads in STORED.loads(found).tolist()} == {(2, 20, 20), (11, 11, 20)}
    assert STORED.loads(STORED.leximax(found)).max() - STORED.loads(STORED.leximax(found)).min() == 9


def test_counterexamples_open_in_lbopt_solve(solved_at_the_terminal):
    findings = measure_printed(seed=3)
    assert [finding.verdict() for finding in findings] == [Verdict.REFUTED] * 2
    for finding in findings:
        problem, loads = solved_at_the_terminal(finding.counterexample)
        assert loads.max() - loads.min() > problem.work.max()
        assert str(loads.max() - loads.min()) in finding.counterexample["says"]


@pytest.mark.parametrize("row", [0, 1])
def test_a_bound_too_small_by_one_is_caught(row):
    rng = np.random.default_rng(0)
    finding = held_against(round_statements(slack=-1)[row], "", until(whole_rounds(3, 2, 6), 2_000, rng))
    assert finding.verdict() == Verdict.REFUTED


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"G": 1}, "lemma-1 assumes at least G = 2 workers; G is 1"),
        ({"B": 0}, "B is 0"),
        ({"s_max": 1}, "s_max is 1"),
        ({"G": 9, "B": 9}, "placements here"),
        ({"optima": 0}, "optima is 0"),
        ({"solved": -1}, "solved is -1"),
    ],
)
def test_what_it_refuses(wrong, says):
    with pytest.raises(InputError, match=says):
        measure_corrected(seed=0, **wrong)
