"""A rule that keeps and refuses, run by `test_choosing_rules.py` without compilation so that it can be put in.

The longest first, each to the unit with the most headroom; without any headroom it is kept, and the third time refused.
"""

import sys

import numpy as np

from lbopt.kernels.prefill import scheduler
from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, Simulation

CALLS = []


def allocate(asked, m, g, turn, chunk, tops_up, load):
    length, deferred, batch, unit = asked.length, asked.deferred, asked.shown[:m], asked.unit
    CALLS.append((batch.tolist(), load.tolist()))
    for k in sorted(range(batch.size), key=lambda k: -length[batch[k]]):
        d = int(np.argmin(load))
        if load[d] < chunk:
            unit[k] = d
            load[d] += length[batch[k]]
        else:
            unit[k] = -2 if deferred[batch[k]] >= 2 else -1


def main():
    scheduler.allocate, scheduler.chooses = allocate, lambda code: True
    refused = kept = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 60))
        requests = PrefillRequests(np.sort(rng.integers(0, 40, n)) / 8, rng.integers(1, 12, n))
        policy = ("pooled", "staggered", "staggered:timer=tick", "staggered:idle_bypass=yes")[seed % 4]
        latency = (0.0, 0.125)[seed // 4 % 2]
        setting = PrefillSetting(2, 2, policy, pass_time=PassTime(0.5, 0.0), chunk_tokens=8, latency=latency)
        simulation = Simulation(requests, setting, seed)
        simulation.run()
        found = simulation.result(0.0)
        status, progress = simulation.state.status, simulation.state.progress
        assert progress.refused == (~found.served).sum()
        assert (found.requests["deferred"][~found.served] == 2).all()
        assert (status.left[found.served] == 0).all()
        assert progress.not_begun == progress.unfinished == 0
        assert found.passes["tokens"].sum() == requests.length[found.served].sum()
        assert (simulation.state.backlog == 0).all()
        refused += int(progress.refused)
        kept += int(found.requests["deferred"].sum())
    assert all(batch == sorted(batch) for batch, _ in CALLS), "the queue stays in order of arrival"
    assert refused > 20 and kept > 100, (refused, kept)


if __name__ == "__main__":
    sys.exit(main())
