"""Active experts and the law by them: the sheet's table, direct sampling, the calibration, its fixed point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.hardware import ExpertStepTime, make_step_time
from lbopt.hardware.step_time import expected_active


@pytest.mark.parametrize(
    ("chosen", "published"),
    [
        (8, {1: 8, 8: 51.62, 16: 82.42, 32: 111.77, 64: 125.94, 128: 127.97}),
        (4, {1: 4, 8: 28.71, 16: 50.98, 32: 81.66, 64: 111.22, 128: 125.80}),
    ],
)
def test_the_table_of_the_sheet(chosen, published):
    active = expected_active(list(published), 128, chosen)
    assert active == pytest.approx(list(published.values()), abs=0.005)


def test_expectation_against_sampling():
    rng = np.random.default_rng(7)
    experts, chosen, requests, draws = 12, 3, 5, 4000
    counts = [
        len({expert for _ in range(requests) for expert in rng.choice(experts, chosen, replace=False)})
        for _ in range(draws)
    ]
    half_width = 4 * np.std(counts) / draws**0.5
    assert expected_active(requests, experts, chosen) == pytest.approx(np.mean(counts), abs=half_width)


@given(st.integers(1, 64), st.integers(0, 200), st.data())
def test_bounds_monotone_and_a_skewed_gate_wakes_fewer(experts, requests, data):
    chosen = data.draw(st.integers(1, experts))
    batch = np.arange(requests + 1)
    uniform = expected_active(batch, experts, chosen)
    assert uniform[0] == 0
    assert (np.diff(uniform) >= -1e-9).all()
    assert (uniform <= np.minimum(experts, chosen * batch) + 1e-9).all()
    assert (uniform[1:] >= chosen - 1e-9).all()
    assert expected_active(batch, experts, chosen, (chosen / experts,) * experts) == pytest.approx(uniform)
    skewed = expected_active(batch, experts, chosen, (1.0,) * chosen + (0.0,) * (experts - chosen))
    assert (skewed <= uniform + 1e-9).all()


def test_the_calibration_of_eldr():
    law = ExpertStepTime.of_eldr(1.0)
    assert law.layer_seconds / law.seconds_per_expert == pytest.approx(14.27, abs=0.005)
    assert law.seconds_per_expert == pytest.approx(1.781e-6, rel=1e-3)
    assert 128 * law.seconds_per_expert == pytest.approx(228e-6, rel=1e-2)
    of_layer = [law.layer_seconds + law.seconds_per_expert * active for active in (16, 128)]
    assert of_layer[1] / of_layer[0] == pytest.approx(4.7)


@pytest.mark.parametrize(("batch", "milliseconds"), [(10.1, 15.7), (48.2, 25.1), (88.8, 27.8)])
def test_the_fixed_point_of_the_sheet(batch, milliseconds):
    """Its loads carry no tokens; batches need not be whole there."""
    law = ExpertStepTime.of_eldr(0.7)
    active = expected_active(batch, 128, 8)
    of_layers = 48 * (law.layer_seconds + law.seconds_per_expert * active)
    step = law.other_seconds + law.seconds_per_request * batch + of_layers
    assert step * 1e3 == pytest.approx(milliseconds, abs=0.06)


def test_form_and_seconds_agree():
    rng = np.random.default_rng(3)
    loads, running = rng.integers(0, 90_000, (20, 6)), rng.integers(0, 40, (20, 6))
    law = ExpertStepTime.of_eldr()
    assert law.seconds(loads, running) == pytest.approx(law.form(6, 40).seconds(loads, running), rel=1e-12)


def test_actual_experts_by_hand():
    law = ExpertStepTime(1.0, 0.5, 0.25, 0.125, 2.0, layers=3, experts=8, experts_per_token=2)
    # (tokens, requests, active) of two workers: 2*.25 + 3*.5 + 3*(.125 + 2*4) and nothing at all
    seconds = law.seconds(np.array([2, 0]), np.array([3, 0]), np.array([4.0, 0.0]))
    assert seconds == 1 + 0.5 + 1.5 + 3 * 8.125


def test_fewer_experts_are_faster():
    law = ExpertStepTime.of_eldr()
    loads, running = np.full((1, 4), 30_000), np.full((1, 4), 32)
    expected = expected_active(running, 128, 8)
    assert law.seconds(loads, running, 0.78 * expected) < law.seconds(loads, running, expected)
    assert law.seconds(loads, running, expected) == law.seconds(loads, running)


def test_the_text_form():
    law = make_step_time("experts")
    assert make_step_time(law.name) == law == ExpertStepTime.of_eldr()
    assert make_step_time("experts:layers=94,other=0.01").describe()["layers"] == 94
    assert law.describe()["kind"] == "experts"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expected_active(1, 8, 9), "experts per token is 9 of 8 experts"),
        (lambda: expected_active(1, 3, 1, (0.5, 0.5)), "the gate has 2 chances; expected 3"),
        (lambda: expected_active(1, 2, 1, (1.5, -0.5)), "each from 0 to 1"),
        (lambda: expected_active(1, 2, 1, (0.5, 0.6)), r"sum to 1\.1; expected 1"),
        (lambda: ExpertStepTime.of_eldr(0.0), "share of bandwidth reached is 0"),
        (lambda: make_step_time("experts:other=-1"), r"other_seconds is -1\.0; expected a finite number"),
        (lambda: make_step_time("experts:per_expert=nan"), "seconds_per_expert is nan"),
        (lambda: make_step_time("experts:layers=0"), "layers is 0; expected 1 or more"),
        (lambda: make_step_time("experts:chosen=200"), "experts per token is 200 of 128 experts"),
        (lambda: ExpertStepTime(0, 0, 0, 0, 0, 1, 8, 2), "a step would take no time"),
        (
            lambda: ExpertStepTime.of_eldr().seconds(np.zeros(2), np.zeros(2, int), np.zeros(3)),
            r"have shapes \(2,\), \(2,\) and \(3,\); expected the same",
        ),
        (
            lambda: ExpertStepTime.of_eldr().seconds(np.zeros(2), np.zeros(2, int), np.full(2, 129.0)),
            "active experts lie outside of 0 to 128",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
