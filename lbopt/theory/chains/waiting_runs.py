"""Runs of gated instances by the name of the interface, and averages over them with their standard errors.

Time is counted in passes. Every interface of one seed and replication meets the same arrivals (common random numbers),
and each replication has initial phases of its own: the unspaced pool forgets them only slowly. An average over one
long run has its error from 50 batch means, the first tenth dropped; one over replications from their spread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import record, records
from lbopt.kernels.sampling import waiting as kernel
from lbopt.theory.chains.batch_means import Average

Floats = NDArray[np.float64]

BATCHES = 50
BOUND = {"random": kernel.RANDOM, "round-robin": kernel.ROUND_ROBIN, "jsq": kernel.JSQ}
INTERFACES = (*BOUND, "random-back-to-back", "pool", "frozen-pool", "tick", "spacing", "idle-bypass")


def bound(code: int, traffic: Traffic, time: float, capacity: int, back_to_back: bool, wait: Floats) -> int:
    """Bind requests on arrival by the rule `code`, write their waits, and return how many passes served a request.

    Parameters
    ----------
    time, capacity
        Of a pass, and the most requests that it takes.
    back_to_back
        Whether instances start passes even with no request in them.
    """
    rules, of = record(kernel.PASSES), records(traffic.phases.size, kernel.INSTANCE)
    rules.time, rules.capacity, rules.back_to_back = time, capacity, back_to_back
    of.phase = traffic.phases
    return int(kernel.bound(code, traffic.arrival, traffic.uniforms, rules, of, wait))


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """What every interface meets: arrivals in passes (n,), a uniform number for each (n,), phases in [0, 1) (N,)."""

    arrival: Floats
    uniforms: Floats
    phases: Floats

    @classmethod
    def poisson(cls, N: int, load: float, requests: int, seed: int, replication: int = 0) -> Traffic:
        """Return Poisson arrivals, `load` per instance and pass.

        Parameters
        ----------
        replication
            Number of the run; it changes the draw.
        """
        gaps, uniforms, phases = (np.random.default_rng([seed, replication, part]) for part in range(3))
        arrival = np.cumsum(gaps.exponential(1 / (N * load), requests))
        return cls(arrival, uniforms.random(requests), np.sort(phases.random(N)))

    def waits(self, interface: str, capacity: int = 0) -> Floats:
        """Return the wait of each request, in passes, float64 (n,); capacity 0: passes hold all that wait."""
        return self.served(interface, capacity)[0]

    def served(self, interface: str, capacity: int = 0) -> tuple[Floats, int]:
        """Return the waits, and how many passes served a request."""
        wait = np.empty_like(self.arrival)
        N, most = self.phases.size, capacity or self.arrival.size
        lattice = np.arange(N) / N
        if interface in BOUND or interface == "random-back-to-back":
            back_to_back, code = interface not in BOUND, BOUND.get(interface, kernel.RANDOM)
            return wait, bound(code, self, 1.0, most, back_to_back, wait)
        if interface in ("frozen-pool", "tick"):
            phases = lattice if interface == "tick" else self.phases
            return wait, kernel.clocked(self.arrival, phases, 1.0, most, wait)
        interval = 0.0 if interface == "pool" else 1 / N
        return wait, kernel.pooled(self.arrival, self.phases, 1.0, most, interval, interface == "idle-bypass", wait)

    def account(self, interface: str, capacity: int = 0) -> str:
        """Return in words where requests wait, how full passes are, and how much of the time instances idle."""
        _, passes = self.served(interface, capacity)
        where = "at the device" if interface.startswith(tuple(BOUND)) else "at the scheduler"
        fill, idle = self.arrival.size / passes, 1 - passes / (self.phases.size * self.arrival[-1])
        return f"waits {where}; {fill:.3g} requests a pass that serves any, instances empty {idle:.1%} of the time"


def steady(values: Floats) -> Average:
    """Return the average of one long run: its last nine tenths in 50 batches."""
    size = values.size * 9 // 10 // BATCHES
    batches = values[values.size - size * BATCHES :].reshape(BATCHES, size).mean(axis=1)
    return Average.of(batches, size * BATCHES)


def spread(wait: Floats) -> str:
    """Return median and 99th percentile of a run, for the note of a finding."""
    median, far = np.quantile(wait[wait.size // 10 :], (0.5, 0.99))
    return f"P50 {median:.4g}, P99 {far:.4g} passes"
