"""Prices of a cost study: drawn constants, what balance saves, what the price hangs on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.hardware import AffineStepTime, device_card, device_names
from lbopt.studies.cost import LEVEL, LoadPoint, run_cost
from tests.studies.cost_cases import POINT, config, figures, known


def test_what_is_level_saves_what_was_waited():
    outcome = run_cost([POINT, POINT.balanced(LEVEL)], config(devices=("ascend-910c",)))
    assert [device.law for device in outcome.devices] == ["calibrated", "published slope"]
    for device in outcome.devices:
        today, level = device.points
        assert all(figure.nominal == 0 for name, figure in today.figures.items() if "saved" in name or "gain" in name)
        assert level.figures["wait_share"].nominal == 0
        assert level.figures["time_saved_share"].nominal == pytest.approx(today.figures["wait_share"].nominal)
        assert level.figures["dollars_saved_share"].nominal == pytest.approx(today.figures["wait_share"].nominal)
        for figure in (*today.figures.values(), *level.figures.values()):
            assert not figure.low > figure.median and not figure.median > figure.high
    assert outcome.devices[0].bound and not outcome.devices[1].bound
    assert sum(outcome.devices[0].bound.values()) == pytest.approx(1)


def test_a_law_of_ones_own_has_no_interval_and_is_exact():
    outcome = run_cost([POINT, POINT.balanced(LEVEL)], config(step_time="affine:fixed=0.05,per_token=1e-7", rental=2.0))
    (device,) = outcome.devices
    today, level = (point.figures for point in device.points)
    law = AffineStepTime(0.05, 1e-7)
    assert today["step_milliseconds"].nominal == pytest.approx(1e3 * law.seconds(110_000))
    assert today["step_milliseconds"].low == pytest.approx(today["step_milliseconds"].high)
    assert level["throughput_gain_share"].nominal == pytest.approx(law.seconds(110_000) / law.seconds(85_000) - 1)
    per_second = 8 * 35 / law.seconds(110_000)
    assert today["tokens_per_second"].nominal == pytest.approx(per_second)
    money = 8 * device.devices_per_worker * 2.0 / 3600 / per_second * 1e6
    assert today["dollars_per_million"].nominal == pytest.approx(money)
    month = 8 * device.devices_per_worker * 2.0 * 8760 / 12
    assert today["dollars_per_month"].nominal == pytest.approx(month)
    saved = level["time_saved_share"].nominal
    assert level["dollars_per_month"].nominal == pytest.approx(month * (1 - saved))
    assert level["dollars_saved_per_year"].nominal == pytest.approx(12 * month * saved)


def test_the_published_step_is_that_of_a_balanced_fleet():
    outcome = run_cost([POINT.balanced(LEVEL)], config(devices=("ascend-910c",)))
    published = outcome.devices[1].points[0].figures["step_milliseconds"]
    assert published.nominal == pytest.approx(60)
    assert 50 < published.low < published.median < published.high < 78


def test_equal_seeds_give_equal_figures_and_other_seeds_others():
    first, again, other = (run_cost([POINT], config(seed=seed)) for seed in (3, 3, 4))
    assert known(first) == known(again) != known(other)


def test_devices_do_not_change_each_others_draws():
    alone = run_cost([POINT], config(devices=("h800",)))
    both = run_cost([POINT], config(devices=("a100", "h800")))
    assert known(alone) == known(both, device=[d.card.name for d in both.devices].index("h800"))


def test_an_error_shared_with_today_cancels_in_the_saving():
    """A point computed from today's is as far off as that one: its saving is surer than of an independent one."""
    noisy = LoadPoint.of_means(85_000, 200_000, 8, 35)
    today = type(noisy)(**{f: getattr(noisy, f) for f in noisy.__slots__} | {"max_load_error": 5_000.0})
    shared = today.with_imbalance(150_000, "shared")
    own = type(noisy)(
        **{f: getattr(shared, f) for f in shared.__slots__}
        | {"label": "own", "shared_error": 0.0, "max_load_error": 5_000.0}
    )
    law = config(step_time="affine:fixed=0.05,per_token=1e-7")
    outcome = run_cost([today, shared, own], law)
    shared_width, own_width = (
        f["time_saved_share"].high - f["time_saved_share"].low for f in (figures(outcome, 0, 1), figures(outcome, 0, 2))
    )
    assert shared_width < own_width / 10


def test_a_batch_enters_the_price():
    """Ten times the requests at the same context take longer steps: no law gives them the step of a few."""
    few, many = (LoadPoint.of_means(2_000.0 * n, 0, workers=8, running=n) for n in (35, 350))
    steps = [
        figures(run_cost([point], config(devices=("h200",))))["step_milliseconds"].nominal for point in (few, many)
    ]
    assert steps[1] > 1.5 * steps[0]


@pytest.mark.parametrize("model", ["deepseek-v3", "gpt-oss-120b", "llama-3.1-405b", "qwen3-next-80b-a3b"])
def test_what_the_values_give_lies_within_what_the_draws_give(model):
    """Every nominal figure of every device lies inside its own 90 % interval."""
    names = [name for name in device_names() if device_card(name).origin == "documents"]
    points = [POINT, POINT.with_imbalance(50_000, "better"), POINT.balanced(LEVEL)]
    outcome = run_cost(points, config(devices=tuple(names), model=model, draws=400, carbon=400.0))
    assert len(outcome.devices) >= len(names)
    for device in outcome.devices:
        for cost in device.points:
            for name, figure in cost.figures.items():
                if figure.nominal == figure.nominal:
                    slack = 1e-9 * abs(figure.nominal)
                    assert figure.low - slack <= figure.nominal <= figure.high + slack, (device.card.name, name)


def test_money_and_power_of_a_die_are_half_of_the_package_in_every_draw():
    package, die = (
        figures(run_cost([POINT], config(devices=(name,), devices_per_worker=4)))
        for name in ("ascend-910c", "ascend-910c-die")
    )
    assert die["kilowatts"].nominal == pytest.approx(package["kilowatts"].nominal / 2, rel=0.02)
    assert die["step_milliseconds"].low > package["step_milliseconds"].low


def test_drafts_that_are_not_kept_are_paid_all_the_same():
    two = config(devices=("h200",), tokens_per_request=2)
    kept, lost = (
        figures(run_cost([POINT], config(devices=("h200",), tokens_per_request=2, accepted=part)))
        for part in (2.0, 1.0)
    )
    assert known(run_cost([POINT], two))["step_milliseconds"] == kept["step_milliseconds"] == lost["step_milliseconds"]
    assert lost["dollars_per_million"].nominal == pytest.approx(2 * kept["dollars_per_million"].nominal)


def test_hot_experts_and_shown_messages_make_a_step_longer():
    wide = LoadPoint.of_means(256 * 2050.0, 0, workers=72, running=256)
    step = {
        name: figures(run_cost([wide], config(devices=("h100",), **given)))["step_milliseconds"].nominal
        for name, given in {
            "even": {"balancedness": 1.0},
            "hot": {"balancedness": 0.5},
            "learnt": {},
            "overlapped": {"overlap": True},
        }.items()
    }
    assert step["even"] < step["learnt"] < step["hot"]
    assert step["overlapped"] < step["learnt"]


def test_loads_are_priced_by_the_law_that_made_them_too():
    law = "affine:fixed=0.05,per_token=1e-7"
    outcome = run_cost([POINT], config(devices=("h200",)), simulated=law)
    assert [device.law for device in outcome.devices] == ["calibrated", "as simulated"]
    assert figures(outcome, 1)["step_milliseconds"].nominal == pytest.approx(50 + 1e-4 * 110_000)
    assert any(f"simulated with the step time {law}" in note for note in outcome.notes)


def test_what_the_price_hangs_on():
    outcome = run_cost([POINT], config())
    (device,) = outcome.devices
    nominal = device.points[0].figures["dollars_per_million"].nominal
    swings = [one.swing for one in device.sensitivities]
    assert swings == sorted(swings, reverse=True) and swings[0] > 0
    assert {"rental", "messages", "experts"} < {one.constant for one in device.sensitivities}
    for one in device.sensitivities:
        assert one.low <= nominal <= one.high


@settings(max_examples=15, deadline=None)
@given(st.floats(1e3, 5e5), st.floats(0, 1), st.integers(2, 64), st.floats(1, 200))
def test_more_imbalance_never_costs_less(mean, part, workers, running):
    points = [LoadPoint.of_means(mean, part * mean * workers * k, workers, running) for k in (2, 1, 0)]
    outcome = run_cost(points, config(devices=("ascend-910c", "h800"), model="qwen3-30b-a3b", devices_per_worker=16))
    for device in outcome.devices:
        steps = [cost.figures["step_milliseconds"].nominal for cost in device.points]
        dollars = [cost.figures["dollars_per_million"].nominal for cost in device.points]
        assert steps == sorted(steps, reverse=True)
        assert dollars == sorted(dollars, reverse=True)


@pytest.mark.filterwarnings("error")
def test_of_devices_that_cost_nothing_no_share_is_saved():
    outcome = run_cost([POINT, POINT.balanced(LEVEL)], config(rental=0.0))
    level = figures(outcome, 0, 1)
    assert level["dollars_saved"].nominal == 0 and np.isnan(level["dollars_saved_share"].nominal)
    assert level["time_saved_share"].nominal > 0


def test_a_published_step_is_of_one_token():
    assert not run_cost([POINT], config(devices=("ascend-910c",))).notes
    twice = run_cost([POINT], config(devices=("ascend-910c",), tokens_per_request=2))
    assert any("ascend-910c: the published step is of one token a request" in note for note in twice.notes)
    one = figures(run_cost([POINT], config(devices=("ascend-910c",))), 1)["tokens_per_second"].nominal
    assert figures(twice, 1)["tokens_per_second"].nominal == pytest.approx(2 * one)
