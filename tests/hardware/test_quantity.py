"""Quantities: their ends, their source, and draws between the ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.hardware import Quantity

GOOD = {"value": 2.0, "low": 1.0, "high": 4.0, "unit": "W", "source": "a datasheet", "basis": "published"}


def test_a_quantity_reads_what_it_writes():
    quantity = Quantity.from_dict("card", GOOD, "W")
    assert Quantity.from_dict("card", quantity.to_dict(), "W") == quantity
    exact = Quantity.from_dict("card", {k: v for k, v in GOOD.items() if k not in ("low", "high")}, "W")
    assert (exact.low, exact.value, exact.high) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": -1.0}, "card: value is -1 W; expected a finite number of zero or more"),
        ({"high": float("nan")}, "card: high is nan W"),
        ({"value": 5.0}, "card: value 5 W does not lie between low 1 and high 4"),
        ({"value": "two"}, "card: value is 'two'; expected a number of W"),
        ({"value": True}, "card: value is True; expected a number"),
        ({"high": 10**400}, "card: high has 401 digits; expected a number of W below 1e308"),
        ({"unit": "kW"}, "card has unit 'kW'; expected 'W'"),
        ({"source": " "}, "card: source is missing"),
        ({"basis": "guessed"}, "card: basis 'guessed' is unknown; expected measured, published, derived, assumed"),
        ({"colour": "red"}, "card is not a quantity: unknown colour"),
    ],
)
def test_quantities_that_cannot_be_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        Quantity.from_dict("card", {**GOOD, **change}, "W")


def test_what_is_missing_is_named():
    with pytest.raises(InputError, match="card is not a quantity: missing basis, source"):
        Quantity.from_dict("card", {"value": 1.0, "unit": "W"}, "W")
    with pytest.raises(InputError, match="card is not a quantity: missing one of low and high"):
        Quantity.from_dict("card", {k: v for k, v in GOOD.items() if k != "low"}, "W")
    with pytest.raises(InputError, match="card is 3; expected a table"):
        Quantity.from_dict("card", 3, "W")


@given(st.floats(0, 1e12), st.floats(1, 10), st.floats(1, 10), st.integers(0, 99))
def test_draws_lie_between_the_ends(value, below, above, seed):
    quantity = Quantity(value, value / below, value * above, "W", "x", "assumed")
    drawn = quantity.quantiles(np.random.default_rng(seed).random(50))
    slack = 1e-9 * quantity.high
    assert ((drawn >= quantity.low - slack) & (drawn <= quantity.high + slack)).all()


def test_ends_a_rounding_apart_are_one_number():
    value = 1e9
    drawn = Quantity(value, np.nextafter(value, 0), value, "W", "x", "assumed").quantiles(np.array([0.0, 0.3, 1.0]))
    assert drawn.tolist() == pytest.approx([value] * 3, rel=1e-14)


@given(st.floats(1e-3, 1e6), st.floats(1, 10), st.floats(1, 10))
def test_the_value_is_the_median_wherever_it_stands(value, below, above):
    quantity = Quantity(value, value / below, value * above, "W", "x", "assumed")
    drawn = quantity.quantiles(np.linspace(0, 1, 101))
    assert drawn[50] == pytest.approx(value)
    assert (np.diff(drawn) >= -1e-9 * value * above).all()
    assert (drawn[0], drawn[-1]) == (pytest.approx(quantity.low), pytest.approx(quantity.high))


def test_half_and_double_are_as_likely():
    drawn = Quantity(2.0, 1.0, 4.0, "W", "x", "assumed").quantiles(np.random.default_rng(1).random(200_000))
    assert np.median(drawn) == pytest.approx(2.0, rel=0.005)
    assert (drawn < 2**0.5).mean() == pytest.approx((drawn > 2**1.5).mean(), abs=0.005)
    ends = Quantity(0.5, 0.0, 1.0, "1", "x", "assumed").quantiles(np.array([0.0, 0.5, 1.0]))
    assert ends.tolist() == pytest.approx([0.0, 0.5, 1.0])
