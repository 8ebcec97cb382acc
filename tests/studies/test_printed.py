"""Published figures: the ends that each tolerance gives, and what no tolerance may hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.studies import locality, staggered
from lbopt.studies.printed import Printed, Tolerance, printed_number, printed_range, within, within_odds, within_points
from tools.studies.reproduction import ITEMS, ReproductionConfig
from tools.studies.reproduction.study import QUESTIONS
from tools.studies.reproduction.tolerances import every_digit, same_digits, same_side, within_effect


def all_printed() -> list[tuple[str, Printed]]:
    asked = [question for item in ITEMS for question in QUESTIONS[item](ReproductionConfig())]
    return [(one.quantity, one.printed) for one in (*locality.questions(), *staggered.questions(), *asked)]


@pytest.mark.parametrize(
    ("tolerance", "value", "low", "high"),
    [
        (within(), 57.0, 39.9, 74.1),
        (within(), -40.0, -52.0, -28.0),
        (within(0.02), 0.5, 0.49, 0.51),
        (within_effect(), 0.24, 0.24 / 1.3, 0.24 * 1.3),
        (within_effect(), 0.9, 0.9**1.3, 0.9**0.7),
        (within_effect(), 1.21, 1.21**0.7, 1.21**1.3),
        (within_odds(), 88.7, 85.79, 91.07),  # 30 % of the share itself would hold 62 to 115 %
        (within_odds(), 50.0, 100 / 2.3, 130 / 2.3),
        (within_points(0.1, "rounding"), 9.4, 9.3, 9.5),
        (same_digits(0), 396.0, 395.5, 396.5),
        (same_digits(1), 39.6, 39.55, 39.65),
        (same_side(0.0, "same sign"), -2.5, -math.inf, 0.0),
        (same_side(1.0, "same order"), 1.2, 1.0, math.inf),
    ],
)
def test_the_ends_of_a_tolerance(tolerance: Tolerance, value: float, low: float, high: float) -> None:
    assert tolerance.ends(value) == pytest.approx((low, high), rel=1e-4)


def test_every_digit_is_twelve_digits() -> None:
    low, high = every_digit().ends(396076.69054620364)
    assert low < 396076.69054620364 * (1 - 1e-13) < 396076.69054620364 * (1 + 1e-13) < high
    assert high < 396076.6906


@given(st.floats(0.01, 100).filter(lambda value: abs(math.log(value)) > 1e-3), st.floats(0.01, 0.9))
def test_a_ratio_and_its_inverse_have_the_same_tolerance(value: float, share: float) -> None:
    low, high = within_effect(share).ends(value)
    assert within_effect(share).ends(1 / value) == pytest.approx((1 / high, 1 / low))
    assert not low <= 1 <= high, "no effect is outside"
    assert low < value < high


@given(st.floats(0.1, 99.9), st.floats(1.01, 10))
def test_a_share_and_its_complement_have_the_same_tolerance(percent: float, factor: float) -> None:
    low, high = within_odds(factor).ends(percent)
    assert within_odds(factor).ends(100 - percent) == pytest.approx((100 - high, 100 - low))
    assert 0 < low < percent < high < 100


def test_no_tolerance_holds_what_it_must_exclude() -> None:
    """No effect of a ratio or a change, and numbers that no share and no decrease can have."""
    seen = 0
    for quantity, printed in all_printed():
        if printed.value is None:
            continue
        seen += 1
        if printed.nothing is not None:
            assert printed.value != printed.nothing, quantity
            assert not printed.low < printed.nothing < printed.high, quantity
        if "utilisation" in quantity and printed.unit == "%":
            assert 0 < printed.low < printed.high < 100, quantity
        if printed.unit == "%" and printed.value < 0:
            assert printed.low == -math.inf or printed.low > -100, quantity
    assert seen > 300


def test_every_figure_says_where_it_is_from_and_how_far_ours_may_be() -> None:
    for quantity, printed in all_printed():
        for part in (printed.source, printed.place, printed.text, printed.tolerance, printed.why):
            assert part, quantity
        assert not math.isnan(printed.low + printed.high) or math.isinf(printed.low), quantity


def test_ends_that_are_none_are_refused() -> None:
    about = {"source": "a paper", "place": "Table 1", "text": "5"}
    with pytest.raises(ValueError, match="expected low < high"):
        printed_range(2.0, 2.0, **about)
    with pytest.raises(ValueError, match="expected low < high"):
        printed_number(0.0, within(), **about)
    with pytest.raises(ValueError, match="is not between its ends"):
        printed_number(5.0, Tolerance("off", "a slip", lambda value: (value + 1, value + 2)), **about)
