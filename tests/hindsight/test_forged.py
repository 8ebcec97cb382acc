"""Forged certificates of runs: none is believed above the optimum, none ends in anything but a CertificateError."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lbopt.exceptions import CertificateError
from lbopt.hindsight import check
from lbopt.hindsight.certificate import BoundCertificate, digest
from lbopt.hindsight.check import check_optimum
from lbopt.hindsight.check_surplus import surplus_holds
from lbopt.hindsight.optimum import HindsightResult, optimum
from lbopt.hindsight.timetable import Timetable
from tests.hindsight.forged import SORTS, forge, proof_of
from tests.hindsight.small_runs import least_barriers

pytestmark = pytest.mark.jit

#: Once accepted: rows of windows for four requests whose least sum of barriers is 36, and the step of their starts.
NAN = float("nan")
FORMER = [
    (1, [0, 4, 41, "surplus", [0, 4], [NAN] * 4], "one of its prices is nan; expected a whole number"),
    (0, [1, 1, 41, "surplus", [0], [10**6] * 4], "the window of steps 1 to 0 is not a part of the run's 3 steps"),
]


def claimed(timetable, worker, content):
    """What a forger hands in: a placement, and that the sum of its barriers is least."""
    workers, upper = timetable.num_workers, timetable.barriers(worker)
    imbalance = workers * upper - int(timetable.totals().sum())
    certificate = BoundCertificate.from_dict(content)
    return HindsightResult(upper, upper, imbalance, imbalance, np.array(worker), 0, 0.0, "proved", certificate)


@pytest.mark.parametrize(("start", "row", "why"), FORMER)
def test_what_was_once_accepted_is_refused(start, row, why):
    timetable = Timetable(2, 2, [start] * 4, [9, 5, 4, 1], [3, 2, 2, 3])
    assert optimum(timetable).lower == least_barriers(timetable) == 36
    result = claimed(timetable, [0, 0, 1, 1], {"timetable": digest(timetable), "windows": [row]})
    assert result.upper == 41
    with pytest.raises(CertificateError, match=why):
        check_optimum(timetable, result)


@pytest.mark.parametrize("value", [True, 1.0, NAN, "1", None, [], 2**200])
@pytest.mark.parametrize("place", [0, 1, 2, 4, 5])
def test_a_number_is_an_integer_in_every_field(place, value):
    timetable = Timetable(2, 2, [0] * 4, [9, 5, 4, 1], [3, 2, 2, 3])
    row = [0, 3, 36, "surplus", [0, 3], [0] * 4]
    row[place] = value if place < 3 else [*row[place][:-1], value]
    with pytest.raises(CertificateError, match="expected a whole number"):
        check_optimum(timetable, claimed(timetable, [0, 1, 1, 0], {"timetable": digest(timetable), "windows": [row]}))


def test_prices_prove_nothing_before_every_request_is_decided():
    rows = [(0, 9, 0), (0, 5, 0)]  # as a window of no steps cuts them off
    assert surplus_holds(rows, (2, 2), [], 41, ((0,), (10**6, 10**6))) is False


@pytest.mark.parametrize("sort", SORTS)
def test_no_forgery_is_believed(sort):
    seen: Counter[str] = Counter()
    for number in range(150):
        wrong = forge("0", sort, number, seen, each=50)
        assert wrong is None, wrong
    assert seen[f"{sort}: refused"] > 75
    assert seen[f"{sort}: accepted, and true"] > 3


@pytest.mark.parametrize(("sort", "name"), [("covers", "_exhaust"), ("surplus", "surplus_holds"), ("steps", "whole")])
def test_a_check_that_believes_is_noticed(sort, name, monkeypatch):
    proof_of(sort, "0/0")
    monkeypatch.setattr(check, name, lambda *given, **more: True)
    assert any(forge("0", sort, number, Counter(), each=50) for number in range(100))


def test_a_run_without_requests_rests_on_no_window():
    timetable = Timetable(2, 1, [], [], [])
    result = optimum(timetable)
    assert result.certificate.windows == ()
    assert check_optimum(timetable, result).bound_established


def test_a_fleet_of_many_workers_is_checked():
    """Numbers of workers beyond a byte once ended in an OverflowError."""
    timetable = Timetable(200, 1, [0, 0], [3, 2], [2, 2])
    content = {"timetable": digest(timetable), "windows": [[0, 2, 8, "covers"]]}
    result = claimed(timetable, [0, 199], content)
    assert result.upper == 7
    claim = replace(result, upper=8, lower=8)
    with pytest.raises(CertificateError, match="the placement's barriers add up to 7, but 8 is claimed"):
        check_optimum(timetable, claim)
    rows = [(0, 3, 2), (0, 2, 2)]
    assert check._exhaust(rows, 200, 1, 7, [3, 4], check.MOST_WAYS)
    assert not check._exhaust(rows, 200, 1, 8, [3, 4], check.MOST_WAYS)
