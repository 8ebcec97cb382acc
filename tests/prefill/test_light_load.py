"""Light load, and pieces in which a long run is recorded."""

import numpy as np
import pytest
from prefill.law_points import PASS

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, Simulation, simulate, simulate_prefill

N = 10


@pytest.fixture(scope="module")
def waits():
    requests = PrefillRequests.poisson(0.05 * N, 1, 2, 100_000)
    policies = ("random", "pooled", "staggered", "staggered:timer=tick", "staggered:idle_bypass=yes")
    found = {}
    for policy in policies:
        setting = PrefillSetting(N, policy=policy, pass_time=PASS)
        found[policy] = simulate_prefill(requests, setting, seed=1).metrics().wait_mean_seconds
    return found


@pytest.mark.jit
def test_the_tick_loses_to_immediate_dispatch(waits):
    assert waits["staggered:timer=tick"] > 1.9 * waits["random"]


@pytest.mark.jit
def test_spacing_is_immediate_over_n_and_loses_to_the_pool(waits):
    assert waits["staggered"] == pytest.approx(waits["random"] / N, rel=0.1)
    assert waits["pooled"] < waits["staggered"] / 10


@pytest.mark.jit
def test_idle_bypass_comes_near_the_pool(waits):
    assert waits["staggered:idle_bypass=yes"] <= waits["pooled"] + waits["staggered"] / 10


def test_a_run_recorded_in_pieces_is_the_same(monkeypatch):
    requests = PrefillRequests.poisson(20.0, np.arange(1, 4000), 3, 3_000)
    setting = PrefillSetting(3, 2, "staggered:window=8", chunk_tokens=1024, pass_time=PassTime(0.05, 1e-5))
    whole = simulate_prefill(requests, setting, seed=4, keep_units=True)
    monkeypatch.setattr(simulate, "ROWS_PER_CHUNK", 1)
    simulation = Simulation(requests, setting, 4, keep_units=True)
    while not simulation.run(7):
        pass
    pieces = simulation.result(0.0)
    assert simulation.state.progress.passes == whole.passes["start"].size > 1000
    for found, expected in ((pieces.requests, whole.requests), (pieces.passes, whole.passes)):
        for name, column in expected.items():
            np.testing.assert_array_equal(found[name], column, name)


def test_waits_by_quarter():
    found = simulate_prefill(PrefillRequests.poisson(20.0, 1, 3, 4_000), PrefillSetting(3), seed=4)
    quarters = found.wait_by_quarter
    assert np.mean(quarters) == pytest.approx(found.wait.mean())
    assert quarters[0] == pytest.approx(found.wait[:1000].mean())
