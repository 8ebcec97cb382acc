"""How the interval of Algorithm 1 settles, told from passes: against the simulator's own, and against one step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.prefill import PassTime, PrefillRequests, PrefillRun, PrefillSetting, Simulation
from tools.studies.staggered.adapting import NEAR, intervals, settling, straight_passes


@pytest.mark.parametrize("topology", [(), ((3.0, 1), (9.0, 3), (14.0, 2))])
def test_the_interval_is_the_one_that_the_simulator_had(topology):
    """Stopped on its way again and again, the simulator has the interval that the passes tell."""
    traffic = PrefillRequests.poisson(12.0, np.array([200, 900, 2500]), seed=3, count=250)
    setting = PrefillSetting(
        3, 4, "staggered:window=7", "pbaa", PassTime(0.2, 1e-4), 1024, latency=0.01, topology=topology
    )
    simulation = Simulation(traffic, setting, seed=3)
    seen = []
    while not simulation.run(moments=9):
        seen.append((simulation.state.progress.now, simulation.state.progress.interval))
    times, values, ended = intervals(simulation.result(0.0), 7)
    assert len(seen) > 20
    for now, interval in seen:
        before = np.searchsorted(times, now, side="right")
        told = values[before - 1] if before else (0.2 + 0.01) / 3
        assert told == pytest.approx(interval, rel=1e-12)
    assert ended[-1] == len(times) - len(topology)


def run_of(seconds, topology=()):
    """A run on two instances of which only the passes are known: one after the other, of these seconds."""
    end = np.cumsum(seconds)
    passes = {"start": end - seconds, "end": end, "instance": np.zeros(end.size, dtype=np.int64)}
    setting = PrefillSetting(2, policy="pooled", pass_time=PassTime(0.5), topology=topology)
    return PrefillRun(PrefillRequests(np.zeros(1), np.ones(1, dtype=np.int64)), setting, 0, {}, passes, 0.0)


def test_a_step_is_followed_in_a_straight_line():
    """From 1 s to 3 s under a window of 40: (40 + 2 k) / 80 after k passes, within 5 % of 1.5 s after 37, 111 s."""
    run = run_of(np.repeat([1.0, 3.0], [60, 100]))
    _, values, _ = intervals(run, 40)
    assert values[60:110] == pytest.approx([(40 + 2 * min(k, 40)) / 80 for k in range(1, 51)])
    found = settling(run, 40, since=45.0, change=60.5, settled_by=240.0, until=360.0)
    assert (found.before, found.final, found.jitter) == pytest.approx((0.5, 1.5, 0.0))
    assert (found.seconds, found.passes) == (110.5, 37)
    assert straight_passes(40, 0.5, 1.5) == 37


def test_a_change_of_the_fleet_counts_at_once():
    found = settling(
        run_of(np.ones(60), ((0.0, 2), (30.5, 1))), 10, since=15.0, change=30.5, settled_by=40.0, until=60.0
    )
    assert (found.before, found.final, found.seconds, found.passes) == (0.5, 1.0, 0.0, 0)


def test_what_cannot_be_told_is_none():
    """A window longer than the run never gets there within it; without a pass there is nothing to say."""
    rising = run_of(np.repeat([1.0, 3.0, 9.0], [30, 2, 3]))
    assert settling(rising, 1, since=15.0, change=30.0, settled_by=30.5, until=63.0).seconds is None
    assert settling(rising, 1, since=15.0, change=30.0, settled_by=70.0, until=70.5) is None


@given(st.integers(1, 300), st.floats(0.05, 5.0), st.floats(0.05, 5.0))
def test_straight_passes_against_counting(window, begin, final):
    away = [abs((begin * (window - k) + final * k) / window - final) for k in range(window + 1)]
    first = next(k for k in range(window + 1) if away[k] <= NEAR * final * (1 + 1e-6))
    last = next(k for k in range(window + 1) if away[k] <= NEAR * final * (1 - 1e-6))
    assert first <= straight_passes(window, begin, final) <= last
