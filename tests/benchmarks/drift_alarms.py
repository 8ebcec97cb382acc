"""`python -m tests.benchmarks.drift_alarms task --first 9200`: false alarms of the watch on drift, delays of true ones.

Worlds of 6 layers of 128 experts, 16 workers, 1,000 calibration requests. A stream draws from 3,000 fresh requests of
the calibration's mix; after 500 to 2,000 of them, one of another mix begins.

Beside it what information allows for the quarter that moves to a known domain, if a test sees the domain of every
request: its Kullback-Leibler information I a request, and the least expected delay ln(g) / I of any test that sounds a
false alarm once in g = 10^6 requests (1 % of runs of 10,000), in the worst case before the change (Lorden 1971). The
share of the domain is known from the calibration requests alone, and false alarms are to be rare whatever it truly is:
so I once more from the share that lies `--deviations` of its error towards the change, the error of `--requests`
requests with twice the variance that chance makes.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
from rich.console import Console

from lbopt.locality import (
    MoEShape,
    RoutingTable,
    World,
    draw_activity,
    draw_workload,
    fit_routing,
    language_workload,
    task_workload,
)
from lbopt.locality.drift import DriftWatch
from lbopt.locality.workload import draw_domains

TAU = 0.1
Seen = list[tuple[float, int, float, int]]


def look(table: RoutingTable, world: World, shares: np.ndarray, number: int, rng: np.random.Generator) -> Seen:
    """What a router tells the watch of requests of a mix."""
    counts = draw_activity(world, draw_domains(shares, number, rng), 256, 1, rng).counts
    near = table.similarities(counts)
    top, kept = near.max(axis=1), counts[:, table.layers]
    strange = np.where(table.drift.used, 0, kept).sum(axis=(1, 2)) / kept.sum(axis=(1, 2))
    within = (near >= top[:, None] - TAU).sum(axis=1)
    return list(zip(top.tolist(), within.tolist(), strange.tolist(), near.argmax(axis=1).tolist(), strict=True))


def information(p: float, q: float) -> float:
    """Kullback-Leibler information of a request that is of a domain or not, of shares q over p."""
    return q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))


def least_delay(p: float, part: float, requests: float, deviations: float) -> tuple[float, float]:
    """Return the information, and the least expected delay, where `part` of the traffic moves to a domain."""
    q = p + part * (1 - p)
    p += deviations * math.sqrt(2 * p * (1 - p) / requests)
    found = information(p, q) if p < q else 0.0
    return found, math.log(1e6) / found if found else math.inf


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["task", "language"])
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--deviations", type=float, default=2.3)
    given = parser.parse_args()
    alarms, delays, causes = 0, defaultdict(list), Counter()
    for seed in range(given.first, given.first + given.worlds):
        make = task_workload if given.kind == "task" else language_workload
        config = make(shape=MoEShape(6, 128, 8), requests=given.requests, decode_steps=16)
        world, activity = draw_workload(config, seed)
        table, rng = fit_routing(activity, 16, starts=2).table, np.random.default_rng(100_000 + seed)
        watch, shares = DriftWatch(table.drift, TAU), np.array(config.shares)
        same = look(table, world, shares, 3000, rng)
        for _ in range(given.runs):
            watch.reset()
            for i in rng.integers(3000, size=10_000):
                watch.observe(*same[i])
            alarms += watch.alarm is not None
        other, special = draw_workload(config, seed + 5000)[0], ~world.generalist
        strangers = replace(world, domain=other.domain * special, topic=other.topic * special)
        known = look(table, world, np.eye(shares.size)[1], 600, rng)
        new = look(table, strangers, shares, 600, rng)
        for name, pool, part in (
            *(("known", known, 1.0), ("known, half", known, 0.5), ("known, quarter", known, 0.25)),
            *(("new", new, 1.0), ("new, half", new, 0.5)),
        ):
            for _ in range(10):
                watch.reset()
                for i in rng.integers(3000, size=int(rng.integers(500, 2000))):
                    watch.observe(*same[i])
                before, late = watch.reading().requests, 0
                while watch.alarm is None and late < 2000:
                    source = pool if rng.random() < part else same
                    watch.observe(*source[int(rng.integers(len(source)))])
                    late += 1
                if watch.alarm is not None:
                    causes[name, watch.alarm.statistic] += 1
                delays[name].append(late if watch.alarm is not None and watch.alarm.request > before else 9999)
        print(seed, "false alarms so far", alarms, {name: float(np.median(d[-10:])) for name, d in delays.items()})
    console = Console(width=120)
    for n in (math.inf, given.requests, 4000, 16000):
        found, least = least_delay(float(shares[1]), 0.25, n, given.deviations if n < math.inf else 0.0)
        console.print(
            f"a quarter to a domain of {shares[1]:.3f}, known from {n:g}: I = {found:.4f}, least delay {least:.0f}"
        )
    console.print(f"what sounded first: {dict(causes)}")
    console.print(f"false alarms: {alarms} of {given.runs * given.worlds} runs of 10,000 requests")
    for name, found in delays.items():
        late = np.array(found)
        console.print(
            f"{name}: within 500 {np.mean(late <= 500):.3f}, median {np.median(late):.0f}, "
            f"P95 {np.quantile(late, 0.95):.0f} (9999 = none in 2,000)"
        )


if __name__ == "__main__":
    main()
