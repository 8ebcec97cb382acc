"""Metrics by hand, over stated windows; their intervals on data whose mean is known."""

import math
import time

import numpy as np
import pytest
from kernels.rules import many
from simulator.traces import Case

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, PowerLaw
from lbopt.model import Fleet, Trace
from lbopt.simulator import ClosedLoop, SimulationSetting, Window
from lbopt.simulator.metrics import NUM_BATCHES, batch_interval

# One slot on each of two workers; see test_pooled_simulation_by_hand in test_naive.py.
#   step   loads at barrier   seconds   loads after
#      1       10   20          3.0       11    0
#      2       11    5          2.1        0    6
#      3        0    6          1.6        0    0
TRACE = Trace(prompt=[10, 20, 5], output=[2, 1, 2], arrival=[0.0, 0.0, 0.0], name="three")


def three(**changes):
    given = {"fleet": Fleet(2, 1), "arrivals": ClosedLoop(2), "step_time": AffineStepTime(1.0, 0.1)}
    return Case(TRACE, SimulationSetting(**(given | changes))).run("fcfs")


def test_the_default_window_ends_with_the_last_admission():
    metrics = three().metrics()
    assert (metrics.first_step, metrics.last_step) == (1, 1)
    assert metrics.imbalance_tokens == 11
    assert metrics.spread_tokens == 11
    assert metrics.idle_share == 0.5
    assert metrics.mean_load_tokens == 5.5
    assert metrics.occupancy == 1.0
    assert metrics.throughput_tokens_per_second == pytest.approx(2 / 3)
    assert metrics.energy_joules == pytest.approx((400 + 100) * 3.0)
    # over all requests
    assert metrics.tpot_mean_seconds == pytest.approx((5.1 / 2 + 3.0 + 3.7 / 2) / 3)
    assert metrics.tpot_p50_seconds == pytest.approx(5.1 / 2)
    assert metrics.first_token_mean_seconds == pytest.approx((3.0 + 3.0 + 2.1) / 3)
    assert (metrics.waiting_mean_steps, metrics.waiting_p99_steps, metrics.waiting_max_steps) == (0.0, 0.0, 0)
    assert metrics.imbalance_tokens_interval is None


def test_a_stated_window():
    metrics = three().metrics(Window(2, 3))
    assert (metrics.first_step, metrics.last_step) == (2, 3)
    assert metrics.imbalance_tokens == (6 + 0) / 2
    assert metrics.spread_tokens == (6 + 0) / 2
    assert metrics.mean_load_tokens == (6 + 0) / 2 / 2
    assert metrics.occupancy == (2 + 1) / 2 / 2
    assert metrics.throughput_tokens_per_second == pytest.approx(3 / 3.7)
    assert metrics.energy_joules == pytest.approx((100 + 400) * 2.1 + (100 + 100) * 1.6)
    # over the requests whose first step is in it: request 2 alone, which starts just before step 2
    assert metrics.tpot_mean_seconds == pytest.approx(3.7 / 2)
    assert metrics.first_token_mean_seconds == pytest.approx(2.1)


def test_the_theory_order_reads_at_the_barrier():
    metrics = three(event_order="theory").metrics(Window(1, 3))
    assert metrics.imbalance_tokens == pytest.approx((10 + 6 + 6) / 3)
    assert metrics.spread_tokens == pytest.approx((10 + 6 + 6) / 3)
    assert metrics.idle_share == pytest.approx((10 / 40 + 6 / 22 + 6 / 12) / 3)
    assert metrics.mean_load_tokens == pytest.approx((30 + 16 + 6) / 3 / 2)


def test_a_window_in_which_nothing_starts_has_no_figures_of_requests():
    metrics = three().metrics(Window(3, 3))
    assert math.isnan(metrics.tpot_mean_seconds)
    assert math.isnan(metrics.tpot_p99_seconds)
    assert math.isnan(metrics.waiting_mean_steps)
    assert metrics.waiting_max_steps == 0
    assert metrics.throughput_tokens_per_second == pytest.approx(1 / 1.6)


def test_a_window_that_is_no_window_is_refused():
    for first, last in ((0, 3), (3, 2), (-1, -1)):
        with pytest.raises(
            InputError, match=rf"window {first}\.\.{last} is not first <= last with steps counted from 1"
        ):
            Window(first, last)
    with pytest.raises(InputError, match=r"window 2\.\.4 goes beyond the run's 3 steps"):
        three().metrics(Window(2, 4))


def test_the_share_of_workers_above_their_memory():
    run = three(fleet=Fleet(2, 1, kv_capacity=10))
    assert run.steps["over_capacity"].tolist() == [1, 1, 0]  # 10 tokens fit, 20 and 11 do not
    assert run.metrics(Window(1, 3)).over_capacity_share == pytest.approx(2 / 6)
    assert three().metrics(Window(1, 3)).over_capacity_share == 0.0
    # Exceeding it is reported, not prevented.
    assert np.array_equal(run.steps["clock"], three().steps["clock"])


def test_power_is_the_settings():
    run = three(power=PowerLaw(idle_watts=50.0, peak_watts=150.0, exponent=1.0), event_order="theory")
    assert run.steps["watts"].tolist() == pytest.approx([150 + 100, 150 + 50 + 100 * 5 / 11, 150 + 50])


def test_all_figures_by_name():
    metrics = three().metrics()
    assert metrics.to_dict()["imbalance_tokens"] == metrics.imbalance_tokens
    assert len(metrics.to_dict()) == len(metrics.__dataclass_fields__)


def test_the_tables_of_a_run():
    run = three()
    requests, steps = run.request_table(), run.step_table()
    assert requests["prompt"].tolist() == [10, 20, 5]
    assert requests["finish_step"].tolist() == [2, 1, 3]
    assert steps["step"].tolist() == [1, 2, 3]
    assert steps["seconds"].tolist() == pytest.approx([3.0, 2.1, 1.6])
    assert "barrier_loads" not in steps
    assert repr(run) == "<Run fcfs (pooled) on three: 3 requests, 2 workers, 3 steps>"


def test_the_seconds_of_a_run_are_those_of_the_wall():
    begin = time.perf_counter()
    seconds = three().seconds
    assert 0 < seconds <= time.perf_counter() - begin


# ---------------------------------------------------------------------------------------------------------------------
# intervals


def test_intervals_of_independent_data_cover_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(1)
    repeats = many(1000, 400)
    covered = ratio_covered = 0
    for _ in range(repeats):
        values = rng.gamma(2.0, 3.0, 400)
        low, high = batch_interval(values, np.ones(400))
        covered += low <= 6.0 <= high
        seconds = rng.uniform(1.0, 3.0, 400)
        low, high = batch_interval(values, seconds)
        ratio_covered += low <= 6.0 / 2.0 <= high
    deviation = 4 * (0.95 * 0.05 / repeats) ** 0.5  # four standard deviations: chance will not fail this test
    assert abs(covered / repeats - 0.95) < deviation
    assert abs(ratio_covered / repeats - 0.95) < deviation + 0.01  # a ratio of means is a little biased


def test_an_interval_by_hand():
    # Batches of two steps: means 0.5, 2.5, ..., 38.5; their deviation is 2 * that of 0..19; t(19, 0.975) = 2.0930.
    low, high = batch_interval(np.arange(40.0), np.ones(40))
    half = 2.093024054408263 * 2 * np.arange(20).std(ddof=1) / 20**0.5
    assert (low, high) == pytest.approx((19.5 - half, 19.5 + half), rel=1e-9)


def test_short_windows_have_no_interval():
    assert batch_interval(np.ones(2 * NUM_BATCHES - 1), np.ones(2 * NUM_BATCHES - 1)) is None
    assert batch_interval(np.ones(2 * NUM_BATCHES), np.ones(2 * NUM_BATCHES)) == (1.0, 1.0)


def test_the_interval_surrounds_the_figure():
    trace = Trace(prompt=np.arange(400) % 37, output=1 + np.arange(400) % 11)
    metrics = Case(trace, SimulationSetting(Fleet(3, 4))).run("fcfs").metrics()
    for name in ("imbalance_tokens", "spread_tokens", "idle_share", "throughput_tokens_per_second"):
        low, high = getattr(metrics, f"{name}_interval")
        assert low < getattr(metrics, name) < high
