"""Effects of runs by Student's law, and arithmetic in four bits: by hand, and against SciPy's laws."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lbopt.hardware import device_card, model_card
from lbopt.hardware.calibrated import (
    PARAMETERS,
    Scatter,
    StepFeatures,
    prior,
    shipped_posterior,
    update,
)
from tools.calibrated_law import calibrate_steps, steps_to_learn_from

STEPS = steps_to_learn_from()
GOOD = Scatter(0.02, 0.3, 0.1)


def test_an_engine_that_is_far_off_moves_the_others_little():
    """One run's steps take twenty times as long: a normal law of runs would give that to all parameters."""
    wrong = [replace(s, seconds=20 * s.seconds) if s.source == "vllm-deepseek-h200" else s for s in STEPS]
    features = StepFeatures.of([s for s in STEPS if s.source == "sglang-kimi-k2"])
    plain, moved = (calibrate_steps(steps, GOOD).nominal(features)[0] for steps in (STEPS, wrong))
    assert moved == pytest.approx(plain, rel=0.08)


def test_effects_of_a_run_that_was_not_seen_are_drawn_from_students_law():
    known = shipped_posterior()
    _, effects = known.draws(40_000, 3)
    scaled = effects / known.scatter.run
    for column in scaled.T:
        assert stats.kstest(column, stats.t(4).cdf).pvalue > 0.001
    assert known.reach == pytest.approx(stats.t(4).ppf(0.95), rel=1e-9)
    both_far = (np.abs(scaled) > 3).all(axis=1).mean()
    assert both_far > 3 * (np.abs(scaled) > 3).mean() ** 2  # one weight for both


def test_once_rows_of_a_run_are_known_its_effects_are_normal():
    known = update(shipped_posterior(), STEPS[:3])
    assert known.seen
    assert known.reach == pytest.approx(stats.norm.ppf(0.95), rel=1e-4)
    _, effects = known.draws(40_000, 3)
    size = np.sqrt(np.diag(known.covariance))[-2:]
    assert stats.kstest((effects[:, 0] - known.mean[-2]) / size[0], "norm").pvalue > 0.001


def test_parameters_are_drawn_with_what_is_believed_of_them():
    known = shipped_posterior()
    drawn, _ = known.draws(40_000, 4)
    assert drawn.mean(axis=0) == pytest.approx(known.mean[:-2], abs=0.02)
    assert np.cov(drawn.T) == pytest.approx(known.covariance[:-2, :-2], abs=0.02)
    again, _ = known.draws(40_000, 4)
    assert (again == drawn).all()


@pytest.mark.parametrize(
    ("device", "rate"),
    [("b200", 9e15), ("gb200", 1e16), ("mi355x", 1.00663e16), ("h100", 9.894e14), ("mi300x", 1.3074e15)],
)
def test_weights_of_four_bits_compute_in_four_bits_where_a_device_can(device, rate):
    """Of a dense model: 2 FLOP a parameter that is not the embedding; elsewhere they are unpacked to sixteen bits."""
    given = replace(
        STEPS[0], device=device, model="llama-3.1-405b", tp=8, devices=8, expert_bytes=0.53125, common_bytes=0.53125
    )
    card, model = device_card(device), model_card("llama-3.1-405b")
    flops = 2 * model.common_parameters * given.running / 8
    found = StepFeatures.of([given]).common_compute[0]
    assert found == pytest.approx(flops / (rate * card["compute_efficiency"].value), rel=1e-4)
    eight = StepFeatures.of([replace(given, expert_bytes=1, common_bytes=1)]).common_compute[0]
    assert eight == pytest.approx(flops / (card["flops_8bit"].value * card["compute_efficiency"].value), rel=1e-4)


def test_before_any_step_was_seen_a_run_is_not_known_either():
    assert not prior(GOOD).seen
    assert len(prior(GOOD).mean) == len(PARAMETERS) + 2
