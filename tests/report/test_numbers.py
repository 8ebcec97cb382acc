"""How numbers look to a person."""

import math

import pytest

from lbopt import numbers
from lbopt.statistics import MeanOverSeeds

MISSING = "–"


@pytest.mark.parametrize(
    "form", ["tokens", "share", "points", "milliseconds", "microseconds", "steps", "whole", "kilojoules"]
)
@pytest.mark.parametrize("value", [None, math.nan])
def test_a_missing_number_is_a_dash(form, value):
    """None and NaN are shown as missing, never as a number."""
    assert getattr(numbers, form)(value) == MISSING


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("tokens", 0, "0"),
        ("tokens", 1234567.4, "1,234,567"),
        ("tokens", -1234.6, "−1,235"),
        ("share", 0, "0.00 %"),
        ("share", 1, "100.00 %"),
        ("share", 0.1234, "12.34 %"),
        ("share", 0.00123, "0.12 %"),
        ("share", -0.004, "−0.40 %"),
        ("share", 12.5, "1,250.00 %"),
        ("points", 0, "0.00 pp"),
        ("points", 0.1234, "12.34 pp"),
        ("points", -0.004, "−0.40 pp"),
        ("milliseconds", 0.0123456, "12.35"),
        ("milliseconds", 12.5, "12,500.00"),
        ("milliseconds", -0.0123456, "−12.35"),
        ("microseconds", 3.14159, "3.1"),
        ("microseconds", 1234.5, "1,234.5"),
        ("steps", 7, "7.0"),
        ("steps", 1500.26, "1,500.3"),
        ("whole", 7, "7"),
        ("whole", 1500.0, "1,500"),
        ("kilojoules", 12345.6, "12.3"),
        ("kilojoules", 12345678.9, "12,345.7"),
        ("kilojoules", -50, "−0.1"),
    ],
)
def test_formats(form, value, text):
    """Thousands are separated, each unit has its own fixed number of digits, and minus is minus."""
    assert getattr(numbers, form)(value) == text


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (MeanOverSeeds(1200.0, None, None), False, "1,200"),
        (MeanOverSeeds(1200.0, None, None), True, "+1,200"),
        (MeanOverSeeds(-5.0, None, None), True, "−5"),
        (MeanOverSeeds(0.0, None, None), True, "0"),
        (MeanOverSeeds(0.4, None, None), True, "0"),
        (MeanOverSeeds(-0.4, None, None), True, "0"),
        (MeanOverSeeds(-5.0, -6.0, -4.0), False, "−5 ± 1"),
        (MeanOverSeeds(1200.0, 1100.0, 1300.0), False, "1,200 ± 100"),
        (MeanOverSeeds(-50.0, -70.0, -30.0), True, "−50 ± 20"),
    ],
)
def test_intervals(value, signed, text):
    """A mean stands with half the width of its interval, and with its sign where it is a difference."""
    assert numbers.with_interval(value, numbers.tokens, signed=signed) == text


def test_nothing_known_is_a_dash():
    assert numbers.with_interval(None, numbers.tokens, signed=True) == numbers.UNKNOWN


def test_intervals_of_shares_are_points():
    """The difference of two shares is in points, with the unit at both numbers."""
    down, up = MeanOverSeeds(-0.05, -0.06, -0.04), MeanOverSeeds(0.05, 0.04, 0.06)
    assert numbers.with_interval(down, numbers.points, signed=True) == "−5.00 pp ± 1.00 pp"
    assert numbers.with_interval(up, numbers.points, signed=True) == "+5.00 pp ± 1.00 pp"


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("tokens", -0.3, "0"),
        ("tokens", -0.0, "0"),
        ("whole", -0.0, "0"),
        ("steps", -0.04, "0.0"),
        ("share", -1e-5, "0.00 %"),
        ("points", -1e-5, "0.00 pp"),
        ("milliseconds", -1e-6, "0.00"),
        ("microseconds", -0.04, "0.0"),
        ("kilojoules", -1.0, "0.0"),
    ],
)
def test_nothing_is_written_minus_zero(form, value, text):
    """A small negative difference rounds to 0, not to -0."""
    assert getattr(numbers, form)(value) == text
