"""The line through the last passes: what moves it, and what does not."""

import numpy as np
import pytest

from lbopt.prefill.protocol import ProtocolSetting
from lbopt.prefill.protocol.anticipation_view import LEAST_MARGIN, PassLaw

SETTING = ProtocolSetting(3, window=50, dispatch="ahead", batch_tokens=3000)


def learned(passes, law=None, setting=SETTING):
    law = law or PassLaw.cold(setting)
    for tokens, seconds in passes:
        law = law.after_pass(tokens, seconds, seconds, seconds - law.predicted(tokens, setting), setting)
    return law


def line(count, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, 3001, count).tolist()
    return [(x, (0.3 + 2e-4 * x) * float(np.exp(noise * rng.standard_normal()))) for x in tokens]


def test_a_line_is_found():
    law = learned(line(60))
    assert law.slope == pytest.approx(2e-4, rel=1e-9)
    assert law.predicted(1000, SETTING) == pytest.approx(0.5, rel=1e-9)
    assert law.margin(SETTING) == LEAST_MARGIN, "the window has no miss any more"


def test_the_least_squares_line_of_numpy():
    passes = line(50, noise=0.1)
    law = learned(passes)
    slope, base = np.polyfit(*zip(*passes, strict=True), 1)
    assert law.slope == pytest.approx(slope, rel=1e-9)
    assert law.predicted(0, SETTING) == pytest.approx(base, rel=1e-9)
    assert law.margin(SETTING) == pytest.approx(2 * np.sqrt(np.mean(np.square(law.missed))), rel=1e-12)


@pytest.mark.parametrize("reported", [1e-6, 3600.0])
@pytest.mark.parametrize("known", [0, 1, 30])
def test_a_wrong_report_moves_nothing(reported, known):
    """The scheduler's own clock says otherwise."""
    law = learned(line(known))
    assert law.after_pass(1000, reported, 0.5, 0.0, SETTING) == law


@pytest.mark.parametrize("seconds", [1e-6, 3600.0])
def test_a_pass_that_really_took_so_long_is_passed_over(seconds):
    """Both clocks agree; it is one of many."""
    law = learned(line(30))
    after = law.after_pass(1000, seconds, seconds, seconds - 0.5, SETTING)
    assert after == law._replace(strange=1)


@pytest.mark.parametrize("seconds", [1e-6, 3600.0])
def test_whatever_comes_predictions_are_bounded(seconds):
    law = learned([(1000, seconds)] * 40)
    for tokens in (0, 1, 10**9):
        assert SETTING.shortest_pass <= law.predicted(tokens, SETTING) <= SETTING.longest_pass
    assert law.margin(SETTING) <= SETTING.margin * SETTING.longest_pass


def test_another_law_is_learned_after_half_a_window():
    law = learned(line(50))
    ten = [(tokens, 10 * seconds) for tokens, seconds in line(100, seed=1)]
    assert learned(ten[:25], law).predicted(1000, SETTING) == pytest.approx(0.5)
    assert learned(ten[:40], law).predicted(1000, SETTING) == pytest.approx(5.0, rel=1e-6)


def test_passes_of_one_size_have_no_slope():
    law = learned([(700, 0.4), (700, 0.6)] * 10)
    assert (law.slope, law.predicted(2000, SETTING)) == (0.0, pytest.approx(0.5))


def test_a_falling_line_is_level():
    law = learned([(100, 0.6), (2000, 0.4)] * 4)
    assert law.slope == 0.0
