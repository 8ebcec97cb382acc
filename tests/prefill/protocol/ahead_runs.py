"""One draw of prompts through the protocol that sends ahead, and through the compiled policy that it copies."""

from __future__ import annotations

import numpy as np
from prefill.protocol.watched import Watched

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.prefill.protocol import ProtocolSetting, TripleCheck
from lbopt.prefill.protocol.faults import Devices, FaultPlan


class Exact(Watched):
    """Passes are reported to take what the clock says, as in the compiled loop: the same to the last bit."""

    def _end(self, now, g, seconds):
        began = next(row[0] for row in reversed(self.log.rows) if row[2] == g)
        super()._end(now, g, now - began)


def drawn(seed):
    """A fleet and prompts: the compiled setting's arguments, arrivals and lengths."""
    rng = np.random.default_rng([seed, 62])
    instances, units = int(rng.integers(1, 7)), int(rng.choice([1, 2, 4, 8]))
    chunk = int(rng.choice([1024, 3072]))
    law = PassTime(0.08, 7e-5, float(rng.choice([0.0, 2e-5])), float(rng.choice([0.0, 5e-5])))
    longest = int(rng.choice([chunk // 2, chunk, 3 * chunk]))
    lengths = rng.integers(1, longest + 1, 1200)
    options = {
        "allocation": str(rng.choice(["backfill", "pbaa", "pbaa:whole=yes", "least-loaded", "longest-first"])),
        "latency": float(rng.choice([0.0, 0.001, 0.005, 0.02])),
        "margin": float(rng.choice([0.0, 2.0])),
        "spacing": float(rng.choice([0.0, 1.0])),
        "window": int(rng.choice([8, 50])),
    }
    full = law.seconds(chunk, chunk, chunk)
    rate = float(rng.choice([0.5, 0.8, 0.95])) * instances * units * chunk / full / lengths.mean()
    arrival = np.cumsum(rng.exponential(1.0, lengths.size)) / rate
    return instances, units, chunk, law, options, arrival, lengths


def compiled(instances, units, chunk, law, options, arrival, lengths):
    """The run of the compiled policy."""
    policy = "anticipating:" + ",".join(f"{name}={options[name]}" for name in ("margin", "spacing", "window"))
    setting = PrefillSetting(
        instances, units, policy, options["allocation"], law, chunk, latency=options["latency"], phases="free"
    )
    return simulate_prefill(PrefillRequests(arrival, lengths), setting, seed=1)


def in_messages(instances, units, chunk, law, options, arrival, lengths, back=0.0, plan=None, **world):
    """The world after the run of the protocol."""
    setting = ProtocolSetting(
        instances,
        default_pass=law.base,
        units=units,
        chunk=chunk,
        latency_back=back,
        watchdog=1000.0,
        dispatch="ahead",
        **options,
    )
    world = (Exact if world.get("moments") else Watched)(
        TripleCheck(setting),
        list(zip(arrival.tolist(), lengths.tolist(), strict=True)),
        plan or FaultPlan(),
        seed=1,
        poll_period=float("inf"),
        devices=Devices(chunk, units=units, pass_time=law),
        **world,
    )
    world.outcome = world.run(arrival[-1], most_events=10**7)
    return world


def first_tokens(world):
    """When each first token is handed on, s."""
    at = np.full(len(world.tokens), np.nan)
    at[list(world.outcome.delivered)] = world.outcome.delivered_at
    return at
