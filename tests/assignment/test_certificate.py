"""The proof of an assignment breaks where anything in it is wrong."""

from dataclasses import replace

import numpy as np
import pytest

from lbopt.assignment import balanced_assignment
from lbopt.exceptions import CertificateError

COSTS = np.array([[0, 5, 9], [1, 4, 9], [2, 4, 9], [9, 0, 9]])


@pytest.fixture
def answer():
    """Centre 0 is full and has a price; centre 1 has room to spare; centre 2 is held at its lower bound."""
    found = balanced_assignment(COSTS, [2, 3, 3], lower=[0, 0, 1])
    found.check(COSTS)
    return found


def planted(answer, **changes):
    return replace(answer, **{name: np.array(value) for name, value in changes.items()})


def test_a_point_elsewhere(answer):
    """Every single move breaks the proof: it breaks a bound or costs more."""
    for i in range(4):
        for k in {0, 1, 2} - {int(answer.labels[i])}:
            labels = answer.labels.copy()
            labels[i] = k
            with pytest.raises(CertificateError):
                planted(answer, labels=labels).check(COSTS)


def test_every_price_but_those_that_prove(answer):
    with pytest.raises(CertificateError, match="is cheaper by"):
        planted(answer, scaled_prices=answer.scaled_prices + np.array([100, 0, 0])).check(COSTS)
    with pytest.raises(CertificateError, match=r"centre 1 holds 1 of 3 points and yet has the price 1 > 0"):
        planted(answer, scaled_prices=answer.scaled_prices + np.array([0, 1, 0])).check(COSTS)
    with pytest.raises(CertificateError, match=r"centre 1 holds 1 points, at least 0, and yet has the price -1 < 0"):
        planted(answer, scaled_prices=answer.scaled_prices - np.array([0, 1, 0])).check(COSTS)
    with pytest.raises(CertificateError, match=r"at most 2\*\*61"):
        planted(answer, scaled_prices=[2**62, 0, 0]).check(COSTS)


def test_another_total(answer):
    with pytest.raises(CertificateError, match="the labels cost"):
        replace(answer, scaled_cost=answer.scaled_cost - 1).check(COSTS)


def test_labels_that_name_no_centre(answer):
    with pytest.raises(CertificateError, match="labels must be"):
        planted(answer, labels=[0, 0, 1, 3]).check(COSTS)
    with pytest.raises(CertificateError, match="labels must be"):
        planted(answer, labels=[0, 0, 1, -1]).check(COSTS)


def test_bounds_that_are_broken(answer):
    with pytest.raises(CertificateError, match="centre 0 holds 2 points; its bounds are 0 and 1"):
        planted(answer, capacity=[1, 3, 3]).check(COSTS)


def test_other_costs(answer):
    with pytest.raises(CertificateError, match="costs are"):
        answer.check(COSTS[:3])
    cheaper = COSTS.copy()
    cheaper[3, 2] = -50
    with pytest.raises(CertificateError):
        answer.check(cheaper)


@pytest.mark.parametrize("seed", range(5))
def test_two_points_that_change_places(seed):
    """The counts stay right; of random costs no other assignment is as cheap."""
    rng = np.random.default_rng(seed)
    costs = rng.random((12, 3))
    found = balanced_assignment(costs, 4)
    found.check(costs)
    i, j = 0, int(np.flatnonzero(found.labels != found.labels[0])[0])
    labels = found.labels.copy()
    labels[[i, j]] = labels[[j, i]]
    with pytest.raises(CertificateError):
        planted(found, labels=labels).check(costs)
