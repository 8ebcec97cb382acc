"""What imbalance costs: load points, drawn constants, and other fleets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, BarrierForm, device_card, device_names, make_step_time
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, simulate
from lbopt.studies.cost import LEVEL, CostConfig, LoadPoint, Rerun, run_cost
from lbopt.studies.cost.drawn_step import DrawnForm
from lbopt.studies.cost.figures import Figure
from lbopt.studies.cost.what_if import by_order_statistics, changed, parse_change
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario
from lbopt.theory.laws.normal_maximum import expected_maximum

POINT = LoadPoint.of_means(85_000, 200_000, workers=8, running=35)


def config(**given):
    return CostConfig(**{"devices": ("h800",), "draws": 100, **given})


def figures(outcome, device=0, point=0):
    return outcome.devices[device].points[point].figures


def known(outcome, device=0):
    """Figures without those that are NaN, which equal nothing."""
    return {name: figure for name, figure in figures(outcome, device).items() if figure.nominal == figure.nominal}


# ---------------------------------------------------------------------------------------------------------------------
# load points


def test_a_point_of_loads_by_hand():
    point = LoadPoint.of_loads([100_000, 80_000], running=4)
    assert (point.max_load, point.mean_load, point.imbalance, point.num_workers) == (100_000, 90_000, 20_000, 2)
    level = point.balanced(LEVEL)
    assert (level.max_load, level.imbalance) == (90_000, 0)
    assert point.with_imbalance(10_000, "half").max_load == 95_000


def test_a_point_of_a_simulation_gives_its_own_step_time_back():
    """Means are enough: priced by the law that it ran with, a run has the throughput that it reported."""
    scenario = Scenario(requests=RequestSource(trace="burstgpt-like", count=3000), num_workers=4, slots_per_worker=36)
    setting = SimulationSetting(Fleet(4, 36), event_order="theory")
    metrics = simulate(scenario.requests.draw_for(1), make_policy("fcfs"), setting).metrics()
    point = LoadPoint.of_metrics("fcfs", [metrics.to_dict()], 4, 36)
    form = DrawnForm.of([setting.form], 4, point.running)
    step = form.step(point, np.zeros(1), np.zeros(1))
    tokens = 4 * point.running
    assert tokens / step.seconds[0] == pytest.approx(metrics.throughput_tokens_per_second, rel=1e-9)
    run = simulate(scenario.requests.draw_for(1), make_policy("fcfs"), setting)
    rows = run.window.rows
    gaps = 4 * run.steps["read_max"][rows] - run.steps["read_sum"][rows]
    batches = gaps[-(gaps.size // 20 * 20) :].reshape(20, -1).mean(axis=1)
    assert point.max_load_error == pytest.approx(batches.std(ddof=1) / 20**0.5 / 4)


def test_several_seeds_give_the_error_of_their_mean():
    runs = [
        {
            "imbalance_tokens": imbalance,
            "mean_load_tokens": 1000.0,
            "occupancy": 0.5,
            "waiting_max_steps": wait,
        }
        for imbalance, wait in ((100.0, 3), (300.0, 9))
    ]
    point = LoadPoint.of_metrics("a", runs, 2, 8)
    assert point.max_load_error == pytest.approx(100 / 2)
    assert (point.max_load, point.longest_wait, point.running) == (1100, 9, 4)
    wide = [
        run | {"imbalance_tokens_interval": (run["imbalance_tokens"] - 500, run["imbalance_tokens"] + 500)}
        for run in runs
    ]
    within = 500 / stdtrit(19, 0.975) / 2**0.5
    assert within > 100  # two seeds that lie close together by chance do not make the runs surer than their batches
    point_of_wide = LoadPoint.of_metrics("a", wide, 2, 8)
    assert point_of_wide.max_load_error == pytest.approx(within / 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LoadPoint.of_loads([], 3), "no loads were given"),
        (lambda: LoadPoint.of_loads([5, -1], 3), "loads hold -1; expected tokens of zero or more"),
        (lambda: LoadPoint.of_loads([5, float("nan")], 3), "loads hold nan"),
        (lambda: LoadPoint.of_loads([5], 0), "running requests a worker are 0; expected a finite number above zero"),
        (lambda: LoadPoint.of_loads([5], float("nan")), "running requests a worker are nan"),
        (lambda: LoadPoint.of_means(10, 1, 4, float("inf")), "running requests a worker are inf"),
        (lambda: LoadPoint.of_means(10, 1, 10**9, 3), "runs up to 3,000,000,000 requests; expected at most 1,000,000"),
        (lambda: LoadPoint.of_means(10, -1, 4, 3), "imbalance is -1; expected tokens of zero or more"),
        (lambda: LoadPoint.of_means(float("inf"), 1, 4, 3), "load is inf; expected a finite number"),
        (lambda: LoadPoint.of_means(10, 1, 0, 3), "workers are 0; expected at least 1"),
        (lambda: LoadPoint.of_means(10, 1, 4, 9, slots=8), "running requests a worker are 9; .* at most the 8 slots"),
    ],
)
def test_points_that_cannot_be_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


# ---------------------------------------------------------------------------------------------------------------------
# drawn constants


def test_tables_are_read_between_their_entries():
    form = BarrierForm(1.0, 0.5, 0.25, of_running=np.array([0.0, 2.0, 6.0]), of_active=np.arange(5.0))
    point = LoadPoint.of_means(10, 8, workers=2, running=1.5)  # the heaviest holds 14
    step = DrawnForm.of([form], 2, 1.5).step(point, np.zeros(1), np.zeros(1))
    assert step.seconds[0] == pytest.approx(1 + 4 + 3 + 0.5 * 14 + 0.25 * 10)
    assert step.waited_seconds[0] == pytest.approx(0.5 * 4)


def test_an_interval_and_its_median():
    draws = np.concatenate([[7.0], np.arange(101.0)])
    assert Figure.of(draws) == Figure(nominal=7.0, median=50.0, low=5.0, high=95.0)


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


def test_workers_take_as_many_devices_as_hold_them():
    outcome = run_cost([POINT], config(devices=("h800", "mi300x")))
    counts = {(device.card.name, device.law): device.devices_per_worker for device in outcome.devices}
    # an eighth of the experts is 84 GB, more than an H800 has
    assert counts == {("h800", "calibrated"): 2, ("mi300x", "calibrated"): 1}
    assert run_cost([POINT], config(devices=("ascend-910c",))).devices[1].devices_per_worker == 4
    given = run_cost([POINT], config(step_time="roofline:device=h800,tp=4"))
    assert given.devices[0].devices_per_worker == 4  # time and money of one fleet


@pytest.mark.parametrize("law", [{}, {"step_time": "affine:fixed=0.05,per_token=1e-7"}])
def test_no_fleet_is_priced_that_its_memory_does_not_hold(law):
    """DeepSeek-V3 on two boards of 80 GB; whoever names the devices is told how many would do."""
    two = LoadPoint.of_means(85_000, 20_000, workers=2, running=35)
    message = r"deepseek-v3 on h800: 3\d\d GB of weights, .* each of 1 devices a worker, .* a worker needs 8 devices"
    with pytest.raises(InputError, match=message):
        run_cost([two], config(devices_per_worker=1, **law))
    heavy = LoadPoint.of_means(1_000_000, 880_000, 8, 35)
    with pytest.raises(InputError, match="no number of devices up to the heads is enough: give a smaller load"):
        run_cost([heavy], config(**law))
    fits = run_cost([two], config(devices_per_worker=8, **law))
    assert fits.devices[0].devices_per_worker == 8


def test_a_published_law_speaks_of_the_fleets_that_were_measured():
    small = run_cost([POINT], config())
    assert [device.law for device in small.devices] == ["calibrated"]
    assert any("measured with 44 to 176 running requests a worker, and 35 were asked for" in n for n in small.notes)
    served = LoadPoint.of_means(440_000, 1e6, workers=144, running=88)
    assert [device.law for device in run_cost([served], config()).devices] == ["calibrated", "published slope"]
    crowded = LoadPoint.of_means(1_000_000, 1e6, workers=8, running=500)
    notes = run_cost([crowded], config(devices=("ascend-910c",))).notes
    assert any("measured with 8 to 96 running requests a worker, and 500 were asked for" in note for note in notes)


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


def test_rows_of_ones_own_move_the_law_and_say_how_much_surer_it_is(tmp_path):
    file = tmp_path / "my-steps.csv"
    file.write_text("running,context_tokens,step_time_ms\n8,2000,31\n32,2000,44\n35,2400,47\n")
    before = figures(run_cost([POINT], config()))["step_milliseconds"]
    outcome = run_cost([POINT], config(calibrate=str(file)))
    after = figures(outcome)["step_milliseconds"]
    assert after.high / after.low < 0.75 * before.high / before.low
    assert after.low < 47 * 1.1 and after.nominal == pytest.approx(47, rel=0.15)
    (note,) = (note for note in outcome.notes if "with the rows of" in note)
    assert "the 90 % interval of a step is 1." in note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("running,step_time_ms\n1,2\n", "has no context_tokens; it needs running, context_tokens and one of step_time"),
        ("running,context_tokens\n1,2\n", "has 0 columns of a step's time"),
        ("running,context_tokens,step_time_ms,colour\n1,2,3,4\n", "has an unknown column colour; known are"),
        ("running,context_tokens,step_time_ms\n1,2,x\n", "line 2: step_time_ms is 'x'; expected a number"),
        ("running,context_tokens,step_time_ms\n1,2,0\n", "line 2: step_time_ms is 0; expected a time above 0"),
        ("running,context_tokens,step_time_ms\n0,2,3\n", "line 2: .*running is 0.0; expected a number above 0"),
        ("running,context_tokens,step_time_ms,tp\n1,2,3,1.5\n", "line 2: tp is 1.5; expected a whole number"),
        ("running,context_tokens,step_time_ms,experts\n1,2,3,all\n", "line 2: experts are 'all'; expected parallel"),
    ],
)
def test_rows_that_cannot_be_are_refused(text, message, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        run_cost([POINT], config(calibrate=str(file)))


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
@given(st.floats(1e3, 1e6), st.floats(0, 1), st.integers(2, 64), st.floats(1, 200))
def test_more_imbalance_never_costs_less(mean, part, workers, running):
    points = [LoadPoint.of_means(mean, part * mean * workers * k, workers, running) for k in (2, 1, 0)]
    outcome = run_cost(points, config(devices=("ascend-910c", "h800"), model="qwen3-30b-a3b", devices_per_worker=16))
    for device in outcome.devices:
        steps = [cost.figures["step_milliseconds"].nominal for cost in device.points]
        dollars = [cost.figures["dollars_per_million"].nominal for cost in device.points]
        assert steps == sorted(steps, reverse=True)
        assert dollars == sorted(dollars, reverse=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"devices": ()}, "no device was named"),
        ({"devices": ("h80",)}, "unknown device 'h80': did you mean h800"),
        ({"model": "deepseek"}, "unknown model 'deepseek': did you mean deepseek-v3"),
        ({"experts": "both"}, "experts 'both' are unknown; expected parallel or local"),
        ({"charge": "all"}, "charge 'all' is unknown; expected wait-spins, wait-idle, wait-busy"),
        ({"carbon": -1.0}, "carbon is -1.0; expected a finite number of zero or more"),
        ({"rental": float("nan")}, "rental is nan"),
        ({"overhead": 0.5}, "overhead is 0.5; .* 1 or more, up to 10"),
        ({"overhead": 130.0}, "overhead is 130; .* up to 10"),
        ({"draws": 10}, "draws are 10; expected 100 to 100000"),
        ({"devices_per_worker": 0}, "devices_per_worker is 0; expected 1 to 1024"),
        ({"tokens_per_request": 0}, "tokens_per_request is 0; expected 1 to 8"),
        ({"accepted": 1.5}, "accepted is 1.5; expected more than 0 and at most 1"),
        ({"balancedness": 1.2}, "balancedness is 1.2; expected more than 0 and at most 1"),
        ({"kv_bytes": 0.0}, "kv_bytes is 0; expected more than 0 and at most 8"),
        ({"prompt_share": -1.0}, "prompt_share is -1; expected 0 to 1000"),
        ({"bill_devices": 0}, "bill_devices is 0; expected at least 1"),
        ({"calibrate": "a.csv", "step_time": "affine"}, "calibrate updates the calibrated law, and step_time replaces"),
        ({"step_time": "affine:fixed=0,per_token=0"}, "a step would take no time"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_configurations_that_cannot_be_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        config(**given)


@pytest.mark.filterwarnings("error")
def test_of_devices_that_cost_nothing_no_share_is_saved():
    outcome = run_cost([POINT, POINT.balanced(LEVEL)], config(rental=0.0))
    level = figures(outcome, 0, 1)
    assert level["dollars_saved"].nominal == 0 and np.isnan(level["dollars_saved_share"].nominal)
    assert level["time_saved_share"].nominal > 0


def test_two_cards_of_one_name_are_refused(tmp_path):
    import tomli_w

    mine = tmp_path / "mine.toml"
    mine.write_text(tomli_w.dumps(device_card("h800").to_dict()))
    with pytest.raises(InputError, match=r"the cards 'h800' and '.*mine.toml' are both named h800; give one of them"):
        config(devices=("h800", str(mine)))


# ---------------------------------------------------------------------------------------------------------------------
# other fleets


def test_by_a_clock_only_the_step_compares():
    """A router with shorter steps has fewer requests running at once, and that is no less work."""
    today = LoadPoint.of_means(85_000, 200_000, 8, 35, slots=40)
    better = LoadPoint.of_means(80_000, 20_000, 8, 33, slots=40)
    outcome = run_cost([today, better, better.at_work_of(today)], config(devices=("h800",)))
    as_it_ran, at_equal_work = (figures(outcome, 0, place)["time_saved_share"].nominal for place in (1, 2))
    assert as_it_ran < 0 < at_equal_work
    moved = better.at_work_of(today)
    assert (moved.mean_load, moved.running, moved.imbalance) == (85_000, 35, pytest.approx(20_000))


def test_from_means_alone_the_heaviest_follows_the_normal_law():
    more = by_order_statistics(POINT, 32)
    assert more.mean_load == POINT.mean_load
    ratio = (more.max_load - more.mean_load) / (POINT.max_load - POINT.mean_load)
    assert ratio == pytest.approx(expected_maximum(32) / expected_maximum(8))
    outcome = run_cost([POINT], config(), what_if=("workers", [16, 32]))
    assert [what.change for what in outcome.what_if] == ["workers=16", "workers=32"]
    assert any("in proportion to the normal law's maximum" in note for note in outcome.notes)
    with pytest.raises(InputError, match="one worker has no imbalance"):
        by_order_statistics(LoadPoint.of_loads([5.0], 1), 4)


def test_a_simulated_fleet_is_that_of_a_study_of_its_own():
    scenario = Scenario(requests=RequestSource(trace="burstgpt-like", count=1500), num_workers=4, slots_per_worker=24)
    rerun = Rerun(scenario, {"jsq": ("jsq", {}), "br-0": ("br-0", {})}, (5,))
    outcome = run_cost([POINT], config(), what_if=("workers", [8]), rerun=rerun)
    points = [cost.point for cost in outcome.what_if[0].devices[0].points]
    assert [point.label for point in points] == ["jsq", "br-0", LEVEL]
    wider = Scenario(requests=RequestSource(trace="burstgpt-like", count=3000), num_workers=8, slots_per_worker=24)
    metrics = simulate(wider.requests.draw_for(5), make_policy("jsq"), wider.setting, seed=5).metrics()
    assert points[0].imbalance == pytest.approx(metrics.imbalance_tokens)
    assert points[0].num_workers == 8


def test_another_fleet_gets_requests_in_proportion(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("a,b\n" + "100,5\n" * 50)
    source = RequestSource(trace=str(file), prompt_column="a", output_column="b")
    scenario = Scenario(requests=source, num_workers=2, slots_per_worker=4, reveal_target=8)
    twice = changed(scenario, "workers", 4)
    assert (twice.requests.count, twice.requests.draw, twice.reveal_target) == (100, "resample", 16)
    half = changed(scenario, "slots", 2)
    assert (half.requests.count, half.requests.draw, half.reveal_target) == (25, "auto", 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker=4", "what-if 'worker=4' is not understood; expected workers=16,32,64 or slots=32,64"),
        ("workers", "what-if 'workers' is not understood"),
        ("workers=4,x", "'x' is not a number of workers; expected at least 2 workers"),
        ("workers=1", "'1' is not a number of workers"),
        ("slots=0", "'0' is not a number of slots; expected at least 1 slot"),
    ],
)
def test_changes_that_cannot_be_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_change(text, None)


def test_a_fleet_beyond_all_memory_is_refused_before_it_is_run():
    rerun = Rerun(Scenario(requests=RequestSource(trace="burstgpt-like")), {"jsq": ("jsq", {})}, (0,))
    with pytest.raises(InputError, match=r"what-if workers=900000: .* requests; expected at most 1,000,000"):
        parse_change("workers=8,900000", rerun)


def test_a_log_says_nothing_of_another_fleet():
    rerun = Rerun(
        Scenario(requests=RequestSource(trace="burstgpt-like")), {"replay:a.csv": ("replay:x/a.csv", {})}, (0,)
    )
    with pytest.raises(InputError, match=r"'replay:a.csv' is a log of what was done on 8 workers with 72 slots"):
        parse_change("workers=8", rerun)


def test_a_larger_fleet_under_the_clock_of_the_trace_has_less_to_do(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("a,b,t\n" + "".join(f"100,50,{k / 10}\n" for k in range(200)))
    source = RequestSource(trace=str(file), prompt_column="a", output_column="b", arrival_column="t", count=100)
    scenario = Scenario(requests=source, num_workers=2, slots_per_worker=8, arrivals="trace")
    outcome = run_cost(
        [POINT], config(), what_if=("workers", [2, 4]), rerun=Rerun(scenario, {"jsq": ("jsq", {})}, (0,))
    )
    before, after = (what.devices[0].points[0].point.running for what in outcome.what_if)
    assert after == pytest.approx(before / 2, rel=0.1)
    assert any("by the trace's own clock" in note for note in outcome.notes)


def test_a_published_step_is_of_one_token():
    assert not run_cost([POINT], config(devices=("ascend-910c",))).notes
    twice = run_cost([POINT], config(devices=("ascend-910c",), tokens_per_request=2))
    assert any("ascend-910c: the published step is of one token a request" in note for note in twice.notes)
    one = figures(run_cost([POINT], config(devices=("ascend-910c",))), 1)["tokens_per_second"].nominal
    assert figures(twice, 1)["tokens_per_second"].nominal == pytest.approx(2 * one)


def test_plain_numbers_say_nothing_of_other_slots():
    with pytest.raises(InputError, match="plain numbers say nothing of other slots"):
        parse_change("slots=4", None)


@pytest.mark.parametrize("device", ["h800", "ascend-910c"])
def test_pricing_means_is_pricing_every_step(device):
    """A roofline is not affine in what runs; over a long run its price from means is that of its steps all the same."""
    requests = RequestSource(trace="burstgpt-like", count=6000).draw_for(2)
    law = make_step_time(f"roofline:device={device},tp=2")
    for policy in ("fcfs", "br-0"):
        own = simulate(requests, make_policy(policy), SimulationSetting(Fleet(4, 48), step_time=law)).metrics()
        elsewhere = simulate(requests, make_policy(policy), SimulationSetting(Fleet(4, 48))).metrics()
        point = LoadPoint.of_metrics(policy, [elsewhere.to_dict()], 4, 48)
        given = {"devices": (device,), "step_time": f"roofline:device={device},tp=2", "devices_per_worker": 4}
        priced = figures(run_cost([point], config(**given)))
        assert priced["tokens_per_second"].nominal == pytest.approx(own.throughput_tokens_per_second, rel=3e-3)
