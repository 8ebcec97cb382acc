"""An adaptive interval can lock into full passes and stubs; keeping what would overshoot cures it.

A full pass leaves a tail on its units, and with the tails alone the engine starts the next pass by itself: six of seven
stubs have no request that begins with them.
"""

import numpy as np

from lbopt.prefill import PrefillRequests, PrefillSetting, simulate_prefill


def settled(allocation, ready="ended", count=20_000):
    """Return the metrics, the share of stubs among settled passes, and of those without a new request among stubs."""
    prompts = np.random.default_rng(1).lognormal(np.log(800), 0.75, count)
    requests = PrefillRequests.poisson(3 * 65, np.clip(np.round(prompts), 1, 3072).astype(np.int64), 5)
    setting = PrefillSetting(3, 8, f"staggered:window=16,ready={ready}", allocation, chunk_tokens=3072)
    run = simulate_prefill(requests, setting, seed=1)
    passes = run.pass_table()
    begins = set(zip(run.requests["instance"].tolist(), run.requests["began"].tolist(), strict=True))
    passes["tails_alone"] = [key not in begins for key in zip(passes["instance"], passes["start"], strict=True)]
    passes = passes.iloc[len(passes) // 5 : -len(passes) // 5]
    stubs = passes["tokens"] < 0.25 * 8 * 3072
    return run.metrics(), stubs.mean(), passes["tails_alone"][stubs].mean()


def test_longest_first_locks_in():
    """Every second pass is a stub where batches wait for an idle instance; where they do not, every fourth."""
    metrics, stubs, tails_alone = settled("longest-first", "free")
    assert stubs > 0.4
    assert tails_alone > 0.8
    assert metrics.chunk_utilisation < 0.6
    assert metrics.first_token_mean_seconds > 5, "and falls behind"
    metrics, stubs, _ = settled("longest-first")
    assert 0.15 < stubs < 0.35
    assert metrics.chunk_utilisation < 0.8


def test_keeping_what_would_overshoot_does_not():
    metrics, stubs, _ = settled("pbaa:whole=yes")
    assert stubs < 0.01
    assert metrics.chunk_utilisation > 0.85
    assert metrics.first_token_mean_seconds < 0.6
    assert metrics.passes_per_request == 1.0
