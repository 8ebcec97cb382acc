"""PBAA inside runs, by `test_pbaa_in_runs.py` without compilation: every call against its definition line by line.

What the scheduler shows it is counted again from the requests: headroom, who was left over, how often.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from naive.pbaa import pbaa as naive_pbaa

from lbopt.kernels.prefill import allocation, scheduler
from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill

CHUNK, LIMIT = 8, 3
GENUINE = allocation.allocate


def compared(flags, kept, seen):
    """Return an `allocate` that calls the genuine one and compares; `kept` counts deferrals by itself."""

    def allocate(asked, m, g, turn, chunk, tops_up, load):
        length, hits, unit = asked.length, asked.hits, asked.unit
        before, batch = load.copy(), asked.shown[:m].copy()
        GENUINE(asked, m, g, turn, chunk, tops_up, load)
        cached = hits[batch, g] if flags["cache"] else None
        pending = [kept[i] > 0 for i in batch.tolist()]
        wanted, _ = naive_pbaa(
            (chunk - before).tolist(), length[batch].tolist(), cached, pending, flags["printed"], flags["whole"], chunk
        )
        for i, expected, found in zip(batch.tolist(), wanted, unit[: batch.size].tolist(), strict=True):
            kept[i] += expected is None
            assert found == ((-2 if kept[i] > LIMIT else -1) if expected is None else expected)
            if found >= 0:
                before[found] += length[i] - hits[i, g, found]
            seen[min(found, 0)] += 1
        assert (before == load).all()

    return allocate


def main():
    seen = Counter()
    for seed in range(64):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 60))
        length = rng.integers(1, 12, n)
        hits = rng.integers(0, length[:, None, None] // 2 + 1, (n, 2, 3))
        requests = PrefillRequests(np.sort(rng.integers(0, 20, n)) / 8, length, hits)
        policy = ("pooled", "staggered", "staggered:timer=tick", "staggered:idle_bypass=yes")[seed % 4]
        flags = {"printed": bool(seed & 4), "cache": bool(seed & 8), "whole": bool(seed & 16)}
        options = ",".join([f"n_limit={LIMIT}", *(f"{option}=yes" for option, value in flags.items() if value)])
        setting = PrefillSetting(
            2, 3, policy, f"pbaa:{options}", PassTime(0.5, 0.0), CHUNK, latency=(0.0, 0.125)[seed // 32]
        )
        scheduler.allocate = compared(flags, Counter(), seen)
        simulate_prefill(requests, setting, seed=seed)
    assert min(seen.values()) > 20 and set(seen) == {-2, -1, 0}, seen


if __name__ == "__main__":
    sys.exit(main())
