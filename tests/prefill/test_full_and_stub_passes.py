"""An adaptive interval can lock into full passes that alternate with stubs; keeping what would overshoot cures it.

A full pass leaves a tail on every unit. The tails alone are a pass, a short one, which pulls the mean pass and with it
the interval down, so that half of all passes start nearly empty and the other half cannot make up for it.
"""

import numpy as np

from lbopt.prefill import PrefillRequests, PrefillSetting, simulate_prefill


def settled(allocation, count=20_000):
    """Return the metrics, and the share of passes below a quarter of the chunks once the run has settled."""
    prompts = np.random.default_rng(1).lognormal(np.log(800), 0.75, count)
    requests = PrefillRequests.poisson(3 * 65, np.clip(np.round(prompts), 1, 3072).astype(np.int64), 5)
    run = simulate_prefill(requests, PrefillSetting(3, 8, "staggered:window=16", allocation, chunk_tokens=3072), seed=1)
    filled = run.passes["tokens"][len(run.passes["tokens"]) // 5 : -len(run.passes["tokens"]) // 5] / (8 * 3072)
    return run.metrics(), float((filled < 0.25).mean())


def test_longest_first_locks_in():
    metrics, stubs = settled("longest-first")
    assert stubs > 0.4
    assert metrics.chunk_utilisation < 0.6
    assert metrics.first_token_mean_seconds > 5, "and falls behind"


def test_keeping_what_would_overshoot_does_not():
    metrics, stubs = settled("pbaa:whole=yes")
    assert stubs < 0.01
    assert metrics.chunk_utilisation > 0.85
    assert metrics.first_token_mean_seconds < 0.6
    assert metrics.passes_per_request == 1.0
