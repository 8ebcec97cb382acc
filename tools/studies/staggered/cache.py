"""PBAA without an eye for the cache, with one as printed, and with one as mended (Algorithm 2 of SBS).

Nothing is published of prefixes, so this is a law of ours. A prompt begins with one of `SYSTEMS` system prompts with
probability `shared`; which of them, goes by Zipf's law (the k-th is k times rarer than the first), and they have
between a quarter and all of the mean prompt's tokens. Each is resident on `COPIES` units of every instance, drawn once,
and nothing is evicted or learnt in a run. What a request begins with is part of its prompt, all but the last token of
which can be cached. A rule without an eye for the cache still gets the hits of the unit that it happens to choose.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill import PassTime, PrefillRequests, PrefillRun, PrefillSetting, simulate_prefill
from lbopt.studies.staggered.places import PLACES, UNITS, WINDOW, Place, most_rate, prompts
from lbopt.studies.staggered.rows import Key, Row

SYSTEMS, COPIES = 64, 2
SHARED = (0.3, 0.6, 0.9)
#: Shares of the rate that saturates an instance without a cache.
LOADS = (0.75, 0.9)
POLICY = f"staggered:window={WINDOW}"
ALLOCATIONS = {
    "basic": "pbaa",
    "cache, mended": "pbaa:cache=yes",
    "cache, printed": "pbaa:printed=yes,cache=yes",
}


def measure(*, place: str, shared: float, instances: int, requests: int, version: str, seed: int) -> list[Row]:
    """Return the hits and the service of every rule at every load; `requests` are of an instance."""
    where = PLACES[place]
    length, hits = cached_prompts(where, shared, instances, requests * instances, seed)
    possible: float | None = float(hits.max(axis=(1, 2)).sum() / length.sum())
    rows: list[Row] = []
    for load in LOADS:
        rate = load * most_rate(where, PassTime()) * instances
        arrival = PrefillRequests.poisson(rate, length, seed=seed).arrival
        traffic = PrefillRequests(arrival, length, hits, name="shared prefixes")
        for name, allocation in ALLOCATIONS.items():
            setting = PrefillSetting(instances, UNITS, POLICY, allocation, PassTime(), chunk_tokens=where.chunk)
            keys: dict[str, Key] = {"place": place, "shared": shared, "load": load, "allocation": name}
            run = simulate_prefill(traffic, setting, seed=seed)
            rows.append((keys, {"possible": possible} | values_of(run)))
    return rows


def cached_prompts(
    place: Place, shared: float, instances: int, count: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return lengths, int64 (n,), and hits, int64 (n, N, D), tokens, of `count` prompts.

    Parameters
    ----------
    shared
        Share of prompts with a common prefix.
    """
    length = prompts(place, count, seed)
    rng = np.random.default_rng([seed, 11])
    prefix = np.rint(place.mean * rng.uniform(0.25, 1.0, SYSTEMS)).astype(np.int64)
    popularity = 1 / np.arange(1, SYSTEMS + 1)
    resident = rng.random((SYSTEMS, instances, UNITS)).argsort(axis=2) < COPIES
    system = rng.choice(SYSTEMS, count, p=popularity / popularity.sum())
    begins = np.where(rng.random(count) < shared, np.minimum(prefix[system], length - 1), 0)
    return length, begins[:, None, None] * resident[system]


def values_of(run: PrefillRun) -> dict[str, float | None]:
    """Return the quantities of a run: shares of prompt tokens, tokens of a pass, s, dispatches."""
    metrics, served = run.metrics(), run.served
    assert run.traffic.hits is not None
    instance, unit = run.requests["instance"][served], run.requests["unit"][served]
    hit = run.traffic.hits[served][np.arange(int(served.sum())), instance, unit]
    return {
        "hit": float(hit.sum() / run.traffic.length[served].sum()),
        "fullest": float(run.passes["fullest"].mean()),
        "fullest_over_mean": float(run.passes["fullest"].sum() * UNITS / run.passes["tokens"].sum()),
        "ttft": metrics.first_token_mean_seconds,
        "ttft_p99": metrics.first_token_p99_seconds,
        "deferred": float(run.requests["deferred"].mean()),
        "utilisation": metrics.chunk_utilisation,
        "cycle": metrics.pass_cycle_seconds,
    }
