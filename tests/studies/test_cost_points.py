"""Load points of a cost study: from loads, means and runs, and what a price from means leaves out."""

import numpy as np
import pytest
from scipy.special import stdtrit

from lbopt.exceptions import InputError
from lbopt.hardware import BarrierForm, make_step_time
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, simulate
from lbopt.studies.cost import LEVEL, LoadPoint, run_cost
from lbopt.studies.cost.device_law import DrawnForm
from lbopt.studies.cost.outcome import Figure
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario
from tests.studies.cost_cases import config, figures


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


def test_tables_are_read_between_their_entries():
    form = BarrierForm(1.0, 0.5, 0.25, of_running=np.array([0.0, 2.0, 6.0]), of_active=np.arange(5.0))
    point = LoadPoint.of_means(10, 8, workers=2, running=1.5)  # the heaviest holds 14
    step = DrawnForm.of([form], 2, 1.5).step(point, np.zeros(1), np.zeros(1))
    assert step.seconds[0] == pytest.approx(1 + 4 + 3 + 0.5 * 14 + 0.25 * 10)
    assert step.waited_seconds[0] == pytest.approx(0.5 * 4)


def test_an_interval_and_its_median():
    draws = np.concatenate([[7.0], np.arange(101.0)])
    assert Figure.of(draws) == Figure(nominal=7.0, median=50.0, low=5.0, high=95.0)


def test_by_a_clock_only_the_step_compares():
    """A router with shorter steps has fewer requests running at once, and that is no less work."""
    today = LoadPoint.of_means(85_000, 200_000, 8, 35, slots=40)
    better = LoadPoint.of_means(80_000, 20_000, 8, 33, slots=40)
    outcome = run_cost([today, better, better.at_work_of(today)], config(devices=("h800",)))
    as_it_ran, at_equal_work = (figures(outcome, 0, place)["time_saved_share"].nominal for place in (1, 2))
    assert as_it_ran < 0 < at_equal_work
    moved = better.at_work_of(today)
    assert (moved.mean_load, moved.running, moved.imbalance) == (85_000, 35, pytest.approx(20_000))


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
