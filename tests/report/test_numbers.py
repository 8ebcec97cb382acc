"""How numbers look to a person."""

import math

import pytest

from lbopt.report import numbers
from lbopt.studies.intervals import MeanOverSeeds

MISSING = "–"


@pytest.mark.parametrize("form", ["tokens", "share", "milliseconds", "microseconds", "plain", "kilojoules"])
@pytest.mark.parametrize("value", [None, math.nan])
def test_a_missing_number_is_a_dash(form, value):
    """None and NaN are shown as missing, never as a number."""
    assert getattr(numbers, form)(value) == MISSING


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("tokens", 0, "0"),
        ("tokens", 1234567.4, "1,234,567"),
        ("tokens", -1234.6, "-1,235"),
        ("share", 0, "0.0 %"),
        ("share", 1, "100.0 %"),
        ("share", 0.1234, "12.3 %"),
        ("share", 0.00123, "0.12 %"),
        ("share", -0.004, "-0.4 %"),
        ("milliseconds", 0.0123456, "12.35"),
        ("milliseconds", 12.5, "12,500.00"),
        ("microseconds", 3.14159, "3.1"),
        ("microseconds", 1234.5, "1,234"),
        ("plain", 7, "7"),
        ("plain", 1500.0, "1,500"),
        ("plain", 1500.25, "1,500.2"),
        ("kilojoules", 12345.6, "12.3"),
    ],
)
def test_formats(form, value, text):
    """Thousands are separated, small shares keep two digits, units are scaled."""
    assert getattr(numbers, form)(value) == text


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (MeanOverSeeds(1200.0, None, None), False, "1,200"),
        (MeanOverSeeds(1200.0, None, None), True, "+1,200"),
        (MeanOverSeeds(-5.0, None, None), True, "-5"),
        (MeanOverSeeds(0.0, None, None), True, "0"),
        (MeanOverSeeds(1200.0, 1100.0, 1300.0), False, "1,200 ± 100"),
        (MeanOverSeeds(-50.0, -70.0, -30.0), True, "-50 ± 20"),
    ],
)
def test_intervals(value, signed, text):
    """A mean stands with half the width of its interval, and with its sign where it is a difference."""
    assert numbers.with_interval(value, numbers.tokens, signed=signed) == text


def test_nothing_is_written_minus_zero():
    """A small negative difference rounds to 0, not to -0."""
    assert numbers.tokens(-0.3) in ("0", "-0.3")
