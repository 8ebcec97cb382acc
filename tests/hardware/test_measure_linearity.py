"""The straight law and the verdict, on times that follow a known law."""

import math

import numpy as np
import pytest
from hardware.fake_backend import linear
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.hardware.measure.attention import grid
from lbopt.hardware.measure.timing import fit_line, judge

POINTS = grid(1024, 2**20, 9, (1, 8))


def times(law, noise=0.0, seed=0, points=POINTS):
    draw = np.random.default_rng(seed).standard_normal(len(points))
    return np.array([law(point.batch, point.tokens) for point in points]) * np.exp(noise * draw)


def test_a_line_is_found_again():
    law = fit_line(POINTS, times(linear))
    assert law.fixed.value == pytest.approx(30e-6, rel=1e-6)
    assert law.per_request.value == pytest.approx(2e-6, rel=1e-6)
    assert law.per_token.value == pytest.approx(5e-9, rel=1e-6)
    assert law.calls[8].value == pytest.approx(46e-6, rel=1e-6)
    assert law.seconds(4, 1000) == pytest.approx(linear(4, 1000))
    assert np.abs(law.residuals).max() < 1e-9


@given(
    fixed=st.floats(1e-6, 1e-3), request=st.floats(0, 1e-4), token=st.floats(1e-10, 1e-5), factor=st.floats(1e-3, 1e3)
)
def test_any_line_is_found_again_in_any_unit(fixed, request, token, factor):
    seconds = times(lambda batch, tokens: fixed + request * batch + token * tokens)
    law, scaled = fit_line(POINTS, seconds), fit_line(POINTS, factor * seconds)
    assert law.per_token.value == pytest.approx(token, rel=1e-5)
    assert scaled.per_token.value == pytest.approx(factor * token, rel=1e-5)


def test_the_fit_is_that_of_an_independent_solver():
    """Weighted least squares by statsmodels' rule, done with plain normal equations on a scaled problem."""
    seconds = times(linear, 0.05, 3)
    law = fit_line(POINTS, seconds)
    design = np.array([[1.0, p.batch, p.tokens] for p in POINTS]) / seconds[:, None]
    expected, *_ = np.linalg.lstsq(design, np.ones(len(seconds)), rcond=None)
    assert [law.fixed.value, law.per_request.value, law.per_token.value] == pytest.approx(expected, rel=1e-6)
    for place in (0, 7):  # left-out error of a place, by refitting
        others = np.arange(len(seconds)) != place
        again = fit_line([p for p, keep in zip(POINTS, others, strict=True) if keep], seconds[others])
        assert again.per_token.value > 0
    refitted = []
    for place in range(len(seconds)):
        others = np.arange(len(seconds)) != place
        found, *_ = np.linalg.lstsq(design[others], np.ones(others.sum()), rcond=None)
        refitted.append(1 - design[place] @ found)
    assert law.left_out_error == pytest.approx(math.sqrt(np.mean(np.square(refitted))), rel=1e-6)


def test_intervals_cover_as_often_as_they_say():
    hits = {"slope": 0, "call": 0}
    for seed in range(400):
        law = fit_line(POINTS, times(linear, 0.03, seed))
        hits["slope"] += law.per_token.low <= 5e-9 <= law.per_token.high
        hits["call"] += law.calls[1].low <= 32e-6 <= law.calls[1].high
    for name, count in hits.items():
        assert 0.91 <= count / 400 <= 0.985, name


LAWS = {
    "quadratic": lambda batch, tokens: linear(batch, tokens) + 1e-15 * tokens**2,
    "power": lambda batch, tokens: 30e-6 + 1e-9 * tokens**1.3,
    "saturating": lambda batch, tokens: 30e-6 + 1e-6 * tokens**0.6,
    "cache edge": lambda batch, tokens: linear(batch, tokens) + 5e-9 * max(0, tokens - 2**17),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_planted_bend_is_found(law, noise):
    found = judge(POINTS, times(LAWS[law], noise, 5))
    assert found.verdict == "not linear", found
    assert min(found.quadratic_error, found.power_error) < found.left_out_error


def test_the_exponent_of_a_power_is_found():
    assert judge(POINTS, times(LAWS["power"])).exponent == pytest.approx(1.3, abs=0.01)
    assert judge(POINTS, times(linear, 0.001)).exponent == pytest.approx(1.0, abs=0.01)


@pytest.mark.more
def test_a_noisy_line_is_seldom_called_bent_and_a_quiet_one_is_called_linear():
    quiet = [judge(POINTS, times(linear, 0.01, seed)).verdict for seed in range(100)]
    assert quiet.count("linear") >= 97
    noisy = [judge(POINTS, times(linear, 0.2, seed)).verdict for seed in range(100)]
    assert noisy.count("not linear") <= 4
    assert noisy.count("linear") <= 5  # at 20 % noise nobody can know


def test_a_bend_within_the_tolerance_counts_as_linear():
    def slight(batch, tokens):
        return linear(batch, tokens) * (1 + 0.02 * tokens / 2**20)

    assert judge(POINTS, times(slight)).verdict == "linear"
    assert judge(POINTS, times(slight), tolerance=0.002).verdict == "not linear"


def test_one_batch_size_has_no_term_per_request():
    points = grid(64, 65536, 8, (4,))
    law = fit_line(points, times(linear, points=points))
    assert law.per_request.value == 0
    assert law.fixed.value == law.calls[4].value == pytest.approx(38e-6)


def test_too_few_places_and_no_time_are_refused():
    with pytest.raises(InputError, match=r"3 places of the grid were timed; .* at least 5"):
        fit_line([POINTS[0], POINTS[3], POINTS[-1]], np.ones(3))
    with pytest.raises(InputError, match="a call took no time"):
        fit_line(POINTS, np.zeros(len(POINTS)))
