"""Decoders without a barrier against a simulation with lists that shares no code with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import decoders as naive
from simulator.expert_traces import expert_trace

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, ExpertStepTime, MeanTermStepTime
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes, simulate_decoders

LAW = ExpertStepTime(0.01, 0.001, 1e-5, 2e-4, 3e-4, 5, 6, 2)


def shortest(i, counts, tokens):
    return int(np.argmin(counts))


def lightest(i, counts, tokens):
    return int(np.argmin(tokens))


def in_turn(G):
    return lambda i, counts, tokens: i % G


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.floats(5.0, 200.0))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("policy", ["jsq", "jsq-load:admission=immediate", "round-robin"])
def test_against_the_twin(policy, seed, G, slots, rate):
    trace = expert_trace(seed, rate=rate)
    router = {"jsq": shortest, "round-robin": in_turn(G)}.get(policy, lightest)
    run = simulate_decoders(trace, make_policy(policy), SimulationSetting(Fleet(G, slots), TraceTimes(), step_time=LAW))
    where, start, finish, fleet = naive.run(
        trace.prompt.tolist(),
        trace.output.tolist(),
        trace.arrival.tolist(),
        trace.experts.decode[trace.experts.profile].astype(float).tolist(),
        router,
        lambda n, tokens, experts: 0.01 + 0.001 * n + 1e-5 * tokens + 5 * (2e-4 + 3e-4 * experts),
        G,
        slots,
    )
    assert run.worker.tolist() == where
    assert run.start == pytest.approx(start, abs=1e-6) and run.finish == pytest.approx(finish, abs=1e-6)
    steps = [step for decoder in fleet for step in decoder.steps]
    assert run.steps.tolist() == [len(decoder.steps) for decoder in fleet]
    assert run.mean_running == pytest.approx(np.mean([step[2] for step in steps]))
    assert run.active_experts == pytest.approx(np.mean([step[3] for step in steps]), abs=1e-5)
    assert run.seconds.sum() == pytest.approx(sum(step[1] for step in steps))
    busy = [sum(step[1] * step[2] for step in decoder.steps) for decoder in fleet]
    assert run.busiest_over_mean == pytest.approx(max(busy) / np.mean(busy), rel=1e-6)
    assert run.running.sum() == trace.output.sum(), "every request runs as many steps as it has tokens"


def test_steps_outside_the_window_are_not_counted():
    trace, setting = expert_trace(), SimulationSetting(Fleet(2, 4), TraceTimes(), step_time=LAW)
    whole, first, rest = (
        simulate_decoders(trace, make_policy("jsq"), setting, window=window)
        for window in ((0.0, np.inf), (0.0, 0.5), (0.5, np.inf))
    )
    assert (first.steps + rest.steps == whole.steps).all() and first.steps.sum() > 0 < rest.steps.sum()
    assert (whole.finish == first.finish).all()


def test_an_idle_worker_begins_at_the_arrival():
    trace = Trace(prompt=[5, 5], output=[2, 1], arrival=[0.0, 10.0])
    setting = SimulationSetting(Fleet(1, 3), TraceTimes(), step_time=AffineStepTime(1.0, 0.0))
    run = simulate_decoders(trace, make_policy("jsq"), setting)
    assert run.start.tolist() == [0.0, 10.0] and run.finish.tolist() == [2.0, 11.0]
    assert run.tpot.tolist() == [1.0, 1.0]


def test_the_end_of_a_step_comes_before_an_arrival_at_that_moment():
    trace = Trace(prompt=[5, 5], output=[3, 1], arrival=[0.0, 1.0])
    setting = SimulationSetting(Fleet(1, 3), TraceTimes(), step_time=AffineStepTime(1.0, 0.0))
    run = simulate_decoders(trace, make_policy("jsq"), setting, window=(1.0, 2.0))
    assert run.start.tolist() == [0.0, 2.0] and run.finish.tolist() == [3.0, 3.0]
    assert run.steps.tolist() == [1], "the step that begins at 1 s counts, that at 2 s does not"


def test_seconds_a_token_leave_out_the_queue_and_busiest_is_by_time():
    # worker 0 runs requests 0 and 2 one after the other, 1 s a token; worker 1 the one of a single token
    trace = Trace(prompt=[0, 0, 0], output=[4, 1, 2], arrival=[0.0, 0.0, 0.0])
    setting = SimulationSetting(Fleet(2, 1), TraceTimes(), step_time=AffineStepTime(1.0, 0.0))
    run = simulate_decoders(trace, make_policy("round-robin"), setting)
    assert run.worker.tolist() == [0, 1, 0] and run.start.tolist() == [0.0, 0.0, 4.0]
    assert run.tpot.tolist() == [1.0, 1.0, 1.0]
    assert run.busiest_over_mean == pytest.approx(6 / 3.5)
    # twice the seconds a step of worker 0: twice the time that it is busy
    trace = Trace(prompt=[100, 0], output=[1, 1], arrival=[0.0, 0.0])
    slow = SimulationSetting(Fleet(2, 1), TraceTimes(), step_time=AffineStepTime(1.0, 0.01))
    assert simulate_decoders(trace, make_policy("round-robin"), slow).busiest_over_mean == pytest.approx(2 / 1.5)


@pytest.mark.parametrize(
    ("policy", "setting", "words"),
    [
        ("br-0", SimulationSetting(Fleet(2, 4), TraceTimes()), "binds a request when it arrives"),
        ("jsq:admission=pooled", SimulationSetting(Fleet(2, 4), TraceTimes()), "binds a request when it arrives"),
        ("jsq", SimulationSetting(Fleet(2, 4), ClosedLoop(3)), "arrivals of a trace"),
        ("jsq", SimulationSetting(Fleet(2, 4), TraceTimes(), step_time=MeanTermStepTime(1e-7, 5e-8)), "all workers do"),
    ],
)
def test_errors(policy, setting, words):
    with pytest.raises(InputError, match=words):
        simulate_decoders(expert_trace(), make_policy(policy), setting)


@pytest.mark.parametrize("window", [(1.0,), (2.0, 1.0), (1.0, 1.0), (np.nan, 1.0), (0.0, 1.0, 2.0)])
def test_windows_that_cannot_be_are_refused(window):
    setting = SimulationSetting(Fleet(2, 4), TraceTimes(), step_time=LAW)
    with pytest.raises(InputError, match=r"window is .*; expected the second at which it begins and a later one"):
        simulate_decoders(expert_trace(), make_policy("jsq"), setting, window=window)
