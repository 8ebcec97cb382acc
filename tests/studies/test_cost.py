"""What imbalance costs: load points, drawn constants, and other fleets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, BarrierForm, device_card, make_step_time
from lbopt.hardware.energy import PowerLaw
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
    assert point.share == pytest.approx(0.9)
    assert point.duty == pytest.approx((1 + 0.8**0.7) / 2)
    level = point.balanced(LEVEL)
    assert (level.max_load, level.imbalance, level.share, level.duty) == (90_000, 0, 1, 1)
    half = point.with_imbalance(10_000, "half")
    assert (half.max_load, half.share) == (95_000, pytest.approx(0.95))


def test_a_point_of_a_simulation_gives_its_own_step_time_and_energy_back():
    """Means are enough: priced by the law that it ran with, a run has the throughput and energy that it reported."""
    scenario = Scenario(requests=RequestSource(trace="burstgpt-like", count=3000), num_workers=4, slots_per_worker=36)
    setting = SimulationSetting(Fleet(4, 36), event_order="theory")
    metrics = simulate(scenario.requests.draw_for(1), make_policy("fcfs"), setting).metrics()
    point = LoadPoint.of_metrics("fcfs", [metrics.to_dict()], 4, 36, PowerLaw().describe())
    form = DrawnForm.of([setting.form], 4, point.running)
    step = form.step(point, np.zeros(1), np.zeros(1))
    tokens = 4 * point.running
    assert tokens / step.seconds[0] == pytest.approx(metrics.throughput_tokens_per_second, rel=1e-9)
    watts = 4 * (100 + 300 * point.duty)
    steps = metrics.last_step - metrics.first_step + 1
    assert watts * step.seconds[0] * steps == pytest.approx(metrics.energy_joules, rel=1e-9)
    assert point.share == pytest.approx(1 - metrics.idle_share)
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
            "idle_share": 0.1,
            "occupancy": 0.5,
            "waiting_max_steps": wait,
            "energy_joules": 1.0,
            "throughput_tokens_per_second": 1.0,
            "first_step": 1,
            "last_step": 10,
        }
        for imbalance, wait in ((100.0, 3), (300.0, 9))
    ]
    point = LoadPoint.of_metrics("a", runs, 2, 8, {"reading": "split", "exponent": 0.7})
    assert point.max_load_error == pytest.approx(100 / 2)
    assert (point.max_load, point.longest_wait, point.running) == (1100, 9, 4)
    wide = [
        run | {"imbalance_tokens_interval": (run["imbalance_tokens"] - 500, run["imbalance_tokens"] + 500)}
        for run in runs
    ]
    within = 500 / stdtrit(19, 0.975) / 2**0.5
    assert within > 100  # two seeds that lie close together by chance do not make the runs surer than their batches
    point_of_wide = LoadPoint.of_metrics("a", wide, 2, 8, {"reading": "split", "exponent": 0.7})
    assert point_of_wide.max_load_error == pytest.approx(within / 2)
    assert point.duty == pytest.approx(0.9**0.7)  # another reading's energy says nothing of this one


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
    outcome = run_cost([POINT, POINT.balanced(LEVEL)], config())
    assert [device.law for device in outcome.devices] == ["roofline", "published slope"]
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
    # an eighth of the experts is 84 GB; what was published is of workers of one device
    assert counts == {("h800", "roofline"): 2, ("h800", "published slope"): 1, ("mi300x", "roofline"): 1}
    assert run_cost([POINT], config(devices=("ascend-910c",))).devices[1].devices_per_worker == 4
    with pytest.raises(InputError, match="deepseek-v3 that holds 1,110,000 tokens fits on no number of h800 devices"):
        run_cost([LoadPoint.of_means(1_000_000, 880_000, 8, 35)], config())
    given = run_cost([POINT], config(step_time="roofline:device=h800,tp=4"))
    assert given.devices[0].devices_per_worker == 4  # time and money of one fleet
    forced = run_cost([POINT], config(devices_per_worker=1))
    assert any("h800" in note and "on each device, which has 80 GB" in note for note in forced.notes)


@settings(max_examples=15, deadline=None)
@given(st.floats(1e3, 1e6), st.floats(0, 1), st.integers(2, 64), st.floats(1, 200))
def test_more_imbalance_never_costs_less(mean, part, workers, running):
    points = [LoadPoint.of_means(mean, part * mean * workers * k, workers, running) for k in (2, 1, 0)]
    outcome = run_cost(points, config(devices=("ascend-910c", "h800"), devices_per_worker=2))
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
        ({"charge": "all"}, "charge 'all' is unknown; expected wait-idle, split, share"),
        ({"carbon": -1.0}, "carbon is -1.0; expected a finite number of zero or more"),
        ({"rental": float("nan")}, "rental is nan"),
        ({"overhead": 0.5}, "overhead is 0.5; .* 1 or more, up to 10"),
        ({"overhead": 130.0}, "overhead is 130; .* up to 10"),
        ({"draws": 10}, "draws are 10; expected 100 to 100000"),
        ({"devices_per_worker": 0}, "devices_per_worker is 0; expected 1 to 1024"),
        ({"tokens_per_request": 0}, "tokens_per_request is 0; expected 1 to 8"),
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
    assert not run_cost([POINT], config()).notes
    twice = run_cost([POINT], config(tokens_per_request=2))
    assert any("h800: the published step is of one token a request" in note for note in twice.notes)
    one = figures(run_cost([POINT], config()), 1)["tokens_per_second"].nominal
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
        point = LoadPoint.of_metrics(policy, [elsewhere.to_dict()], 4, 48, PowerLaw().describe())
        priced = figures(run_cost([point], config(devices=(device,), devices_per_worker=2)))
        assert priced["tokens_per_second"].nominal == pytest.approx(own.throughput_tokens_per_second, rel=3e-3)
