"""The saturation rate, and traces brought to a share of it."""

import numpy as np
import pytest
from simulator.traces import Case

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, Trace
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes, Window
from lbopt.simulator.ceiling import arrival_times, saturation_rate


def test_the_rate_by_hand():
    # Sizes shown: 4, 5 and 9, 10, 11; a = 39 / 5 = 7.8. A step of two slots: 1 + 0.1 * 15.6 = 2.56 s. Outputs: 2.5.
    trace = Trace(prompt=[4, 9], output=[2, 3], arrival=[0.0, 10.0])
    setting = SimulationSetting(Fleet(3, 2), TraceTimes(), step_time=AffineStepTime(1.0, 0.1))
    assert trace.mean_resident_tokens == pytest.approx(7.8)
    assert saturation_rate(trace, setting) == pytest.approx(6 / (2.5 * 2.56))
    # One gap of 10 s, 0.1 requests a second, to half the rate.
    assert arrival_times(trace, setting, 0.5).tolist() == pytest.approx([0.0, 1 / (0.5 * 6 / (2.5 * 2.56))])
    assert arrival_times(trace, setting, None).tolist() == [0.0, 10.0]


def test_stretching_keeps_the_bursts():
    rng = np.random.default_rng(2)
    trace = Trace(prompt=[5] * 50, output=[3] * 50, arrival=np.cumsum(rng.exponential(1.0, 50)))
    setting = SimulationSetting(Fleet(2, 2), TraceTimes(0.9))
    times = arrival_times(trace, setting, 0.9)
    assert np.allclose(times / times[-1], trace.arrival / trace.arrival[-1], rtol=1e-12)
    assert 49 / times[-1] == pytest.approx(0.9 * saturation_rate(trace, setting))
    assert trace.arrival[-1] != times[-1]  # and the trace is as it was


@pytest.mark.more
@pytest.mark.jit
@pytest.mark.parametrize("load", [0.5, 0.95])
def test_occupancy_of_a_memoryless_trace(load):
    """Balanced, a step of a fleet with a share u of its slots busy takes C + t B a u, so that

    u = load * (C + t B a u) / (C + t B a)    (requests in = requests out).
    """
    rng = np.random.default_rng(3)
    N, G, B = 40_000, 4, 32
    trace = Trace(
        prompt=rng.geometric(1 / 300, N),
        output=rng.geometric(1 / 100, N),
        arrival=np.cumsum(rng.exponential(1.0, N)),
    )
    setting = SimulationSetting(Fleet(G, B), TraceTimes(load), step_time=AffineStepTime(0.005, 1e-7))
    run = Case(trace, setting).run("jsq-load")
    C = setting.form.fixed
    full = setting.form.per_token * B * trace.mean_resident_tokens
    expected = load * C / (C + (1 - load) * full)
    warm = Window(run.window.last // 5, run.window.last)
    assert run.metrics(warm).occupancy == pytest.approx(expected, abs=0.03)
    assert run.metrics(warm).waiting_mean_steps < 50  # below saturation the pool does not grow without bound


@pytest.mark.jit
def test_beyond_saturation_the_pool_grows():
    rng = np.random.default_rng(4)
    N = 20_000
    trace = Trace(
        prompt=rng.geometric(1 / 300, N), output=rng.geometric(1 / 100, N), arrival=np.cumsum(rng.exponential(1.0, N))
    )
    run = Case(trace, SimulationSetting(Fleet(4, 32), TraceTimes(1.5))).run("jsq-load")
    last = run.steps["waiting"][: run.window.last]
    arrived = int(np.argmax(run.requests["reveal_step"])) + 1
    assert arrived == N
    assert last.max() > N / 5


def test_a_trace_without_times_needs_a_closed_loop():
    trace = Trace(prompt=[5], output=[3], name="timeless")
    for arrivals in (TraceTimes(), TraceTimes(0.5)):
        with pytest.raises(
            InputError, match=r"trace 'timeless' has no arrival times \(lengths alone, .*; use a closed loop"
        ):
            Case(trace, SimulationSetting(Fleet(1, 1), arrivals)).run("fcfs")
    assert Case(trace, SimulationSetting(Fleet(1, 1), ClosedLoop())).run("fcfs").num_steps == 3


def test_arrivals_at_one_instant_cannot_be_scaled():
    trace = Trace(prompt=[5, 5], output=[3, 3], arrival=[7.0, 7.0], name="burst")
    with pytest.raises(InputError, match=r"trace 'burst' has all its arrivals at one instant"):
        Case(trace, SimulationSetting(Fleet(1, 1), TraceTimes(0.5))).run("fcfs")
    assert Case(trace, SimulationSetting(Fleet(1, 1), TraceTimes())).run("fcfs").num_steps == 6


@pytest.mark.parametrize("load", [0.0, -0.5, 100.0, float("nan"), float("inf")])
def test_a_load_that_is_no_share_is_refused(load):
    with pytest.raises(InputError, match=r"load is .*; expected a share of saturation"):
        TraceTimes(load)


def test_settings_that_cannot_be_used_are_refused():
    with pytest.raises(InputError, match="reveal_target is 0; expected"):
        ClosedLoop(0)
    with pytest.raises(InputError, match="event order 'practice' is unknown; expected paper or theory"):
        SimulationSetting(Fleet(1, 1), event_order="practice")


def test_a_setting_describes_itself():
    closed = SimulationSetting(Fleet(2, 3), ClosedLoop(5)).describe()
    assert closed["arrivals"] == {"kind": "closed-loop", "reveal_target": 5}
    setting = SimulationSetting(Fleet(2, 72, 1000), TraceTimes(0.9), "theory")
    assert setting.describe() == {
        "num_workers": 2,
        "slots_per_worker": 72,
        "kv_capacity": 1000,
        "arrivals": {"kind": "trace-times", "load": 0.9},
        "event_order": "theory",
        "step_time": {
            "kind": "affine",
            "fixed_seconds": 0.0048874999999999995,
            "seconds_per_token": 1.0052490234375e-07,
        },
        "power": {"idle_watts": 100.0, "peak_watts": 400.0, "exponent": 0.7, "reading": "share"},
    }


def test_outputs_beyond_the_calendar_are_refused():
    trace = Trace(prompt=[5], output=[50_000_001], name="long")
    with pytest.raises(InputError, match="trace 'long' has a request of 50000001 output tokens"):
        Case(trace, SimulationSetting(Fleet(1, 1))).run("fcfs")


def test_tokens_beyond_exact_integers_are_refused():
    trace = Trace(prompt=[2**61, 0, 0], output=[1, 1, 1], name="heavy")
    with pytest.raises(InputError, match=r"trace 'heavy' could add up to \d+, beyond 2\*\*62"):
        Case(trace, SimulationSetting(Fleet(1, 1))).run("fcfs")
