"""Algorithm 1, by itself and inside a run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.prefill import AdaptiveInterval, PassTime, PrefillRequests, PrefillSetting, Simulation, simulate_prefill


def test_worked_example():
    """A window of three, by hand."""
    rule = AdaptiveInterval(3, 0.5, 0.02, 4)
    assert rule.interval == pytest.approx(0.13)
    for seconds, window, interval in (
        (0.4, (0.4,), 0.105),
        (0.6, (0.4, 0.6), 0.13),
        (0.8, (0.4, 0.6, 0.8), 0.155),
        (0.2, (0.6, 0.8, 0.2), 0.138333),
    ):
        assert rule.on_end_forward(seconds) == pytest.approx(interval, abs=1e-6)
        assert rule.measured == window
    assert rule.on_topology_change(3) == pytest.approx(0.184444, abs=1e-6)
    assert rule.on_topology_change(0) == pytest.approx(0.184444, abs=1e-6), "no instance: unchanged"


@given(st.integers(1, 5), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12), st.integers(1, 64))
def test_interval_is_between_the_extremes_of_the_window(size, measured, instances):
    rule = AdaptiveInterval(size, 1.0, 0.0, instances)
    for seconds in measured:
        rule.on_end_forward(seconds)
    last = measured[-size:]
    assert rule.measured == tuple(last)
    assert min(last) * (1 - 1e-12) <= rule.interval * instances <= max(last) * (1 + 1e-12)
    assert rule.on_topology_change(2 * instances) == pytest.approx(rule.mean_pass / (2 * instances))


@pytest.mark.more
@given(st.integers(0, 1000), st.integers(1, 6), st.sampled_from(["spacing", "tick"]))
def test_the_loop_follows_it(seed, window, timer):
    rng = np.random.default_rng(seed)
    requests = PrefillRequests(np.sort(rng.random(60) * 20), rng.integers(1, 2000, 60))
    changes = ((5.0, 2), (8.0, 0), (9.0, 4))
    policy = f"staggered:timer={timer},window={window},default_pass=0.5"
    setting = PrefillSetting(4, 2, policy, pass_time=PassTime(0.2, 1e-4), latency=0.02, topology=changes, phases="free")
    simulation = Simulation(requests, setting, seed)
    while not simulation.run(1):
        pass
    passes = simulation.result(0.0).passes
    rule = AdaptiveInterval(window, 0.5, 0.02, 4)
    rows = zip(passes["start"], passes["end"], passes["instance"], strict=True)
    events = [(end, 0, g, end - start) for start, end, g in rows]
    events += [(at, 1, 0, healthy) for at, healthy in changes]
    now = simulation.state.progress.now
    for at, kind, _, value in sorted(events):
        if at <= now:
            rule.on_end_forward(value) if kind == 0 else rule.on_topology_change(value)
    assert simulation.state.progress.interval == pytest.approx(rule.interval, rel=1e-12)
    assert simulation.state.progress.mean_pass == pytest.approx(rule.mean_pass, rel=1e-12)


@pytest.mark.jit
def test_an_interval_that_adapts_finds_the_pass_time():
    """A default ten times too long is forgotten with the first measured pass."""
    requests = PrefillRequests.poisson(40.0, 1, 3, 100_000)
    waits = {}
    for policy in ("staggered", "staggered:default_pass=10", "staggered:default_pass=10,window=8"):
        setting = PrefillSetting(10, policy=policy, pass_time=PassTime.constant(1.0))
        waits[policy] = simulate_prefill(requests, setting, seed=1).metrics().wait_mean_seconds
    right, wrong, adapted = waits.values()
    assert adapted == pytest.approx(right, rel=0.02)
    assert wrong > 5 * right


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ((0, 1.0, 0.0, 1), "window is 0; expected at least 1"),
        ((3, -1.0, 0.0, 1), "default_pass is -1.0 s"),
        ((3, 1.0, -0.1, 1), "latency is -0.1 s"),
        ((3, 1.0, 0.0, 0), "0 healthy instances"),
    ],
)
def test_bad_input(given_, says):
    with pytest.raises(InputError, match=says):
        AdaptiveInterval(*given_)


def test_bad_events():
    rule = AdaptiveInterval(3, 1.0, 0.0, 1)
    with pytest.raises(InputError, match="pass took nan s"):
        rule.on_end_forward(float("nan"))
    with pytest.raises(InputError, match="-1 healthy instances"):
        rule.on_topology_change(-1)
