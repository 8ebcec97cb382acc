"""Passes by hand: chunks, carry-over, hits, latency, topping up, refusals; and the metrics counted again."""

import numpy as np
import pytest
from hypothesis import given, settings
from prefill.cases import prefill_cases

from lbopt.model import Trace
from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill

FREE = {"phases": "free"}


def run(arrival, length, hits=None, seed=0, **rules):
    given = {"num_instances": 1, "pass_time": PassTime(1.0, 0.01), **FREE, **rules}
    return simulate_prefill(PrefillRequests(arrival, length, hits), PrefillSetting(**given), seed=seed, keep_units=True)


def test_what_exceeds_the_chunk_goes_first_in_the_next_pass():
    found = run([0.0, 0.0], [25, 5], chunk_tokens=10)
    assert found.passes["tokens"].tolist() == [10, 10, 10]
    assert found.requests["passes"].tolist() == [3, 1]
    assert found.passes["requests"].tolist() == [1, 1, 2]
    np.testing.assert_allclose(found.passes["start"], [0.0, 1.1, 2.2])
    np.testing.assert_allclose(found.requests["began"], [0.0, 2.2])
    np.testing.assert_allclose(found.requests["finished"], [3.3, 3.3])


def test_the_fullest_unit_sets_the_time_and_hits_shorten_it():
    hits = [[[0, 0]], [[5, 0]], [[0, 8]]]
    found = run([0.0, 0.0, 0.0], [6, 5, 9], hits, units_per_instance=2, allocation="round-robin", chunk_tokens=20)
    assert found.requests["unit"].tolist() == [0, 1, 0]
    assert found.passes["of_unit"].tolist() == [[15, 5]]
    cached = run([0.0, 0.0, 0.0], [6, 5, 9], hits, units_per_instance=2, allocation="least-loaded", chunk_tokens=20)
    assert cached.requests["unit"].tolist() == [0, 1, 1], "the third finds 6 and 5 tokens"
    assert cached.passes["of_unit"].tolist() == [[6, 6]]
    np.testing.assert_allclose(cached.passes["end"], [1.06])


def test_longest_first_levels_what_arrival_order_does_not():
    lengths = [1, 1, 2]
    tokens = {
        rule: run([0.0] * 3, lengths, units_per_instance=2, allocation=rule).passes["of_unit"].tolist()
        for rule in ("least-loaded", "longest-first")
    }
    assert tokens == {"least-loaded": [[3, 1]], "longest-first": [[2, 2]]}


def test_the_longest_chunk_may_cost():
    found = run([0.0, 0.0], [4, 6], pass_time=PassTime(1.0, 0.01, 0.1))
    np.testing.assert_allclose(found.passes["end"], [1.0 + 0.1 + 0.6])


def test_tokens_of_the_other_units_may_cost():
    found = run([0.0, 0.0], [4, 6], units_per_instance=2, pass_time=PassTime(1.0, 0.01, 0.0, 0.1))
    np.testing.assert_allclose(found.passes["end"], [1.0 + 0.06 + 0.1 * 5])


def test_latency_is_neither_at_the_scheduler_nor_on_the_device():
    found = run([0.0, 0.1, 2.0], [1, 1, 1], pass_time=PassTime.constant(1.0), latency=0.25)
    np.testing.assert_allclose(found.requests["dispatched"], [0.0, 1.25, 2.5])
    np.testing.assert_allclose(found.wait, [0.25, 1.4, 0.75])
    np.testing.assert_allclose(found.wait_at_scheduler, [0.0, 1.15, 0.5])
    np.testing.assert_allclose(found.wait_on_device, 0.0, atol=1e-12)


def test_a_batch_that_comes_during_the_pass_of_a_backlog_waits_on_the_device():
    """Ready at 1.1 with 10 tokens left of the 15 it could take: topped up, but the batch comes 0.25 s too late."""
    found = run([0.0, 0.5], [25, 1], chunk_tokens=15, latency=0.25, pass_time=PassTime.constant(1.0))
    np.testing.assert_allclose(found.requests["dispatched"], [0.0, 1.25])
    np.testing.assert_allclose(found.requests["began"], [0.25, 2.25])
    np.testing.assert_allclose(found.wait_on_device, [0.0, 0.75])


def test_refused_when_too_many_have_not_begun():
    found = run([0.0, 0.1, 0.2, 0.3, 1.5], [1] * 5, queue_limit=2, pass_time=PassTime.constant(1.0))
    assert found.served.tolist() == [True, True, True, False, True]
    assert np.isnan(found.wait[3]) and found.requests["passes"][3] == 0
    assert found.metrics().refused == 1


def test_nobody_left_to_serve_until_an_instance_comes_back():
    found = run([0.0, 1.0, 2.0], [1] * 3, pass_time=PassTime.constant(0.5), topology=((0.5, 0), (4.0, 1)))
    np.testing.assert_allclose(found.requests["began"], [0.0, 4.0, 4.0])


def test_a_slow_instance_does_not_block_the_ring():
    """The ring's second instance is busy until 9; the third takes over after a second interval."""
    found = run(
        [0.0, 0.5],
        [1, 1],
        num_instances=3,
        policy="staggered:interval=1",
        pass_time=PassTime.constant(1.0),
        phases=(0.0, 0.25, 9.0),
    )
    assert found.requests["instance"].tolist() == [0, 1]
    found = run(
        [0.0, 0.5],
        [1, 1],
        num_instances=2,
        policy="staggered:interval=1",
        pass_time=PassTime.constant(1.0),
        phases=(0.0, 9.0),
    )
    np.testing.assert_allclose(found.requests["began"], [0.0, 2.0])
    assert found.requests["instance"].tolist() == [0, 0]


def test_a_trace_and_its_rate():
    trace = Trace(prompt=[5, 6, 7], output=[1, 1, 1], arrival=[0.0, 1.0, 3.0])
    stretched = PrefillRequests.of_trace(trace, rate=2.0)
    assert stretched.arrival.tolist() == pytest.approx([0.0, 1 / 3, 1.0])
    found = simulate_prefill(trace, PrefillSetting(1), seed=0)
    assert found.request_table()["length"].tolist() == [5, 6, 7]
    assert len(found.pass_table()) == found.passes["start"].size


def test_seeds_change_what_is_drawn_and_nothing_else():
    requests = PrefillRequests.poisson(8.0, np.arange(1, 3000), 1, 2_000)
    setting = PrefillSetting(4, 8, "random", chunk_tokens=3072)
    first, again, other = (simulate_prefill(requests, setting, seed=seed) for seed in (1, 1, 2))
    assert (first.requests["instance"] == again.requests["instance"]).all()
    assert (first.wait == again.wait).all()
    assert (first.requests["instance"] != other.requests["instance"]).any()


@given(prefill_cases())
@settings(max_examples=60)
def test_metrics_counted_again(case):
    found = simulate_prefill(case.requests, case.setting, seed=case.seed)
    m, n = found.metrics(), len(case.requests)
    counted = [i for i in range(n // 10, n) if found.requests["instance"][i] >= 0]
    assert m.requests == len(counted)
    if counted:
        begin, end = case.requests.arrival[n // 10], case.requests.arrival[-1]
        assert m.wait_mean_seconds == pytest.approx(np.mean([found.wait[i] for i in counted]))
        assert m.first_token_p95_seconds == pytest.approx(np.quantile(found.first_token[counted], 0.95))
        parts = m.wait_at_scheduler_mean_seconds + m.wait_on_device_mean_seconds + case.setting.latency
        assert m.wait_mean_seconds == pytest.approx(parts)
        p = found.passes
        rows = [k for k in range(p["start"].size) if begin <= p["start"][k] <= end]
        assert m.passes == len(rows)
        serving = [k for k in rows if p["requests"][k]]
        chunk = case.setting.chunk_tokens
        if chunk and serving:
            units = case.setting.units_per_instance
            assert m.chunk_utilisation == pytest.approx(np.mean([p["tokens"][k] for k in serving]) / (chunk * units))
        if end > begin:
            busy = sum(
                max(0.0, min(p["end"][k], end) - max(p["start"][k], begin))
                for k in range(p["start"].size)
                if p["requests"][k]
            )
            assert m.idle_share == pytest.approx(1 - busy / (case.setting.num_instances * (end - begin)))
            assert -1e-9 <= m.idle_share <= 1 + 1e-9


def test_utilisation_of_the_calibrated_configuration_rises_when_requests_are_held_back():
    """As published: 8 units, chunk 3K, prompts to 3K; held back, passes are fuller and the wait moves."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(3072, np.maximum(1, rng.lognormal(6.6, 0.8, 4_000))).astype(int)
    requests = PrefillRequests.poisson(120.0, lengths, 1, 20_000)
    found = {
        policy: simulate_prefill(requests, PrefillSetting(3, 8, policy, chunk_tokens=3072), seed=1).metrics()
        for policy in ("round-robin", "staggered:window=32")
    }
    bound, held = found.values()
    assert bound.wait_at_scheduler_mean_seconds == 0 and held.wait_at_scheduler_mean_seconds > 0
    assert held.wait_on_device_mean_seconds < bound.wait_on_device_mean_seconds
    assert held.first_token_mean_seconds < bound.first_token_mean_seconds
    assert 0 < held.chunk_utilisation < 1


def test_intervals_of_rates_and_shares():
    """Every interval surrounds its mean, and shrinks like the root of the length of the run."""
    names = ("pass_cycle_seconds", "idle_share", "throughput_requests_per_second", "throughput_tokens_per_second")
    widths = []
    for count in (4_000, 64_000):
        requests = PrefillRequests.poisson(6.0, np.arange(100, 3000), 1, count)
        m = simulate_prefill(requests, PrefillSetting(3, 2, chunk_tokens=3072), seed=1).metrics()
        found = m.to_dict()
        for name in names:
            low, high = found[f"{name}_interval"]
            assert low < found[name] < high
        assert m.throughput_requests_per_second == pytest.approx(6.0, rel=0.05)
        widths.append(np.array([np.diff(found[f"{name}_interval"])[0] for name in names]))
    assert ((widths[0] / widths[1] > 2.5) & (widths[0] / widths[1] < 6.5)).all(), "16 times as long: a quarter as wide"
