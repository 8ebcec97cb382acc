"""With a latency, a batch that is sent when a pass ends misses the next one, and two passes share one chunk.

At the end of a pass the device has what the next pass computes and what it leaves over; headroom is a chunk less both,
and the batch that fills it is computed in the pass after. So two passes that follow each other without a gap hold a
chunk of each unit, and the last request that went beyond it.
"""

import numpy as np
import pytest

from lbopt.prefill import PrefillRequests, PrefillSetting, simulate_prefill

CHUNK, UNITS, LONGEST = 3072, 8, 3000


def pairs(policy, allocation, latency):
    """Return the metrics, the tokens of passes and of those that follow them on the instance without a gap."""
    lengths = np.random.default_rng(3).integers(1, LONGEST + 1, 6_000)
    requests = PrefillRequests.poisson(120.0, lengths, seed=3)
    setting = PrefillSetting(3, UNITS, policy, allocation, chunk_tokens=CHUNK, latency=latency)
    run = simulate_prefill(requests, setting, seed=3)
    first, second = [], []
    for _, own in run.pass_table().groupby("instance"):
        follows = own["start"].to_numpy()[1:] == own["end"].to_numpy()[:-1]
        first += own["tokens"].to_numpy()[:-1][follows].tolist()
        second += own["tokens"].to_numpy()[1:][follows].tolist()
    return run.metrics(), np.array(first), np.array(second)


def test_two_passes_of_a_pool_share_a_chunk():
    """Both ways: halves where batches wait for an idle instance, else full passes and light ones in turn."""
    metrics, first, second = pairs("pooled", "least-loaded", 0.001)
    assert (first + second <= UNITS * CHUNK + LONGEST).all()
    assert 0.4 < metrics.chunk_utilisation < 0.6
    assert (first < 0.15 * UNITS * CHUNK).mean() > 0.3
    metrics, first, second = pairs("pooled:ready=free", "least-loaded", 0.001)
    assert first.size > 300
    assert (first + second <= UNITS * CHUNK + LONGEST).mean() > 0.97, "all but those in which a batch came in time"
    assert 0.45 < metrics.chunk_utilisation < 0.6
    assert (first < 0.15 * UNITS * CHUNK).mean() < 0.05, "halves, not stubs"
    assert metrics.wait_on_device_mean_seconds > 0.2, "a pass"


def test_under_an_interval_full_passes_and_light_ones_take_turns():
    metrics, first, second = pairs("staggered:window=50", "pbaa", 0.001)
    assert np.corrcoef(first, second)[0, 1] < -0.8
    full = first > 0.9 * UNITS * CHUNK
    assert 0.3 < full.mean() < 0.6
    assert (second[full] < 0.6 * UNITS * CHUNK).mean() > 0.8
    assert metrics.chunk_utilisation < 0.7


@pytest.mark.parametrize("allocation", ["least-loaded", "pbaa"])
def test_without_latency_batches_come_in_time(allocation):
    metrics, first, second = pairs("pooled", allocation, 0.0)
    assert (first + second > UNITS * CHUNK + LONGEST).mean() > 0.5
    assert metrics.wait_on_device_mean_seconds < 0.001
