"""The laws of waiting: formulas at every point of the grid, and the samplers of the ledger's claims exactly.

A point holds if the law is inside the 99 % interval of a run. One point in a hundred would be outside by chance; it is
run once more with another seed, and has to be inside then.
"""

import numpy as np
import pytest
from prefill.law_points import PASS, POINTS, Point

from lbopt.kernels.sampling import waiting as sampler
from lbopt.prefill import PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.theory.chains.waiting_runs import Traffic, bound

pytestmark = pytest.mark.jit


def holds(point: Point) -> bool:
    """Tell whether the law is inside the interval, at the second attempt at the latest."""
    return any(abs(mean - point.predicted) <= half for mean, half in map(point.interval, (1, 2)))


@pytest.mark.some(20, but=("M/D/1, N=1, load=0.8", "M/D/10, N=10, load=0.8"))
@pytest.mark.parametrize("point", [p for p in POINTS if not p.slow], ids=str)
def test_law(point):
    assert holds(point)


@pytest.mark.slow
@pytest.mark.parametrize("point", [p for p in POINTS if p.slow], ids=str)
def test_law_on_the_rest_of_the_grid(point):
    assert holds(point)


@pytest.mark.some(12)
@pytest.mark.parametrize("capacity", [None, 1, 4])
@pytest.mark.parametrize("load", [0.05, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("N", [1, 3, 10])
def test_same_waits_as_the_samplers_behind_the_ledger(N, load, capacity):
    """One random process, two programs: equal request by request, up to rounding."""
    n = 3_000
    requests = PrefillRequests.poisson(N * load, 1, 5, n)
    arrival, most, uniforms = np.array(requests.arrival), capacity or n, np.random.default_rng([5, 1]).random(n)

    def ours(policy, **rules):
        setting = PrefillSetting(N, policy=policy, pass_time=PASS, requests_per_pass=capacity, **rules)
        return simulate_prefill(requests, setting, seed=5).wait, setting.initial_phases(5)

    theirs = np.empty(n)
    for code, name in enumerate(("random", "round-robin", "jsq")):
        wait, phases = ours(name)
        bound(code, Traffic(arrival, uniforms, phases), 1.0, most, False, theirs)
        np.testing.assert_allclose(wait, theirs, atol=1e-9, err_msg=name)
    wait, phases = ours("random", engine="back-to-back")
    bound(sampler.RANDOM, Traffic(arrival, uniforms, phases), 1.0, most, True, theirs)
    np.testing.assert_allclose(wait, theirs, atol=1e-9)
    for policy, interval, bypass in (
        ("pooled", 0.0, False),
        ("staggered", 1 / N, False),
        ("staggered:idle_bypass=yes", 1 / N, True),
    ):
        wait, phases = ours(policy)
        sampler.pooled(arrival, phases, 1.0, most, interval, bypass, theirs)
        np.testing.assert_allclose(wait, theirs, atol=1e-9, err_msg=policy)
    for how in ("random", "even"):
        wait, phases = ours("pooled", engine="back-to-back", phases=how)
        sampler.clocked(arrival, phases, 1.0, most, theirs)
        np.testing.assert_allclose(wait, theirs, atol=1e-9, err_msg=how)
    if capacity is None:  # a tick that finds its instance a rounding error short of free is not lost
        wait, _ = ours("staggered:timer=tick", phases="free")
        sampler.clocked(arrival, np.arange(N) / N, 1.0, most, theirs)
        np.testing.assert_allclose(wait, theirs, atol=1e-9)


def test_shares_of_the_worked_example():
    """By hand: idle share under spacing with latency, and the cut of the time to first token at N = 3."""
    busy = Point("", "staggered", 4, 30.0, 0.0, 200_000, rules={"latency": 0.25}).run(1).metrics()
    assert busy.idle_share == pytest.approx(0.25 / 1.25, abs=2e-3)
    assert busy.pass_cycle_seconds == pytest.approx(1.25, abs=2e-3)
    assert busy.wait_on_device_mean_seconds < 1e-9
    at_scheduler = busy.wait_at_scheduler_mean_seconds
    assert at_scheduler == pytest.approx(1.25 / 8, rel=0.01)
    assert busy.wait_mean_seconds == pytest.approx(at_scheduler + 0.25)
    token = [Point("", policy, 3, 12.0, 0.0, 200_000).run(1).metrics() for policy in ("random", "staggered")]
    assert 1 - token[1].first_token_mean_seconds / token[0].first_token_mean_seconds == pytest.approx(
        (1 - 1 / 3) / 3, abs=2e-3
    )
    assert token[0].wait_at_scheduler_mean_seconds == 0
