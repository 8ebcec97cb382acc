"""Runs of gated instances by the name of the interface, and averages over them with their standard errors.

Time is counted in passes. Every interface of one seed and replication meets the same arrivals (common random numbers),
and each replication has initial phases of its own: the unspaced pool forgets them only slowly. An average over one
long run has its error from 50 batch means, the first tenth dropped; one over replications from their spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.sampling import waiting as kernel
from lbopt.statistics import standard_error
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require

Floats = NDArray[np.float64]

BATCHES = 50
BOUND = {"random": kernel.RANDOM, "round-robin": kernel.ROUND_ROBIN, "jsq": kernel.JSQ}
INTERFACES = (*BOUND, "random-back-to-back", "pool", "frozen-pool", "tick", "spacing", "idle-bypass")


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
        if interface in BOUND:
            return wait, kernel.bound(
                BOUND[interface], self.arrival, self.uniforms, self.phases, 1.0, most, False, wait
            )
        if interface == "random-back-to-back":
            return wait, kernel.bound(kernel.RANDOM, self.arrival, self.uniforms, self.phases, 1.0, most, True, wait)
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


@dataclass(frozen=True, slots=True)
class Average:
    """A mean with its standard error, whose degrees of freedom are `dof`, over `trials` requests."""

    mean: float
    error: float
    dof: float
    trials: int

    def finding(
        self, regime: str, quantity: str, predicted: float, relation: str = "=", *, note: str = "", outside: str = ""
    ) -> Finding:
        """Return it as evidence.

        Parameters
        ----------
        regime
            The regime in the words of the report.
        relation
            How the mean and the prediction are related: "=", "<=" or ">=".
        outside
            Why the regime is outside the hypotheses; empty where it is inside.
        """
        return Finding(
            regime=regime,
            quantity=quantity,
            kind="mean",
            relation=relation,
            measured=self.mean,
            predicted=predicted,
            error=self.error,
            dof=self.dof,
            trials=self.trials,
            note=note,
            outside=outside,
        )


def steady(values: Floats) -> Average:
    """Return the average of one long run: its last nine tenths in 50 batches."""
    size = values.size * 9 // 10 // BATCHES
    batches = values[values.size - size * BATCHES :].reshape(BATCHES, size).mean(axis=1)
    return over_replications(batches, trials=size * BATCHES)


def over_replications(values: Sequence[float] | Floats, trials: int) -> Average:
    """Return the average of independent values."""
    found = np.asarray(values, dtype=np.float64)
    error = standard_error(found)
    return Average(float(found.mean()), error, found.size - 1, trials)


def quarters(N: int, load: float, capacity: int, requests: int, replications: int, seed: int) -> Floats:
    """Return the mean wait of the unspaced pool in each quarter of each run, float64 (replications, 4).

    Parameters
    ----------
    capacity
        Most requests of a pass; 0 for no limit.
    replications
        Number of runs.
    """
    found = np.empty((replications, 4))
    for replication in range(replications):
        wait = Traffic.poisson(N, load, requests, seed, replication).waits("pool", capacity)
        found[replication] = wait[: requests // 4 * 4].reshape(4, -1).mean(axis=1)
    return found


def spread(wait: Floats) -> str:
    """Return median and 99th percentile of a run, for the note of a finding."""
    median, far = np.quantile(wait[wait.size // 10 :], (0.5, 0.99))
    return f"P50 {median:.4g}, P99 {far:.4g} passes"


def regime_of(N: int, load: float, capacity: int = 0) -> str:
    """Return the regime in the words of the report."""
    return f"N={N}, load={load:.4g}" + (f", c={capacity}" if capacity else "")


def require_gates(claim: str, N: int, load: float, requests: int, capacity: int = 0, replications: int = 2) -> None:
    """Refuse what cannot be run, or has no steady state.

    Parameters
    ----------
    capacity
        Most requests of a pass; 0 for no limit.
    replications
        Number of runs.
    """
    require(claim, 1 <= N <= 1024, "1 to 1024 instances", f"N is {N}")
    require(claim, 0.001 <= load <= 1000, "a load of 0.001 to 1000 requests per instance and pass", f"load is {load}")
    require(
        claim, capacity >= 0, "a capacity of at least 1 request a pass, or 0 for no limit", f"capacity is {capacity}"
    )
    require(
        claim,
        capacity == 0 or load < capacity,
        "passes that can hold all who come: a load below the capacity",
        f"load is {load} and capacity is {capacity}",
    )
    least, most = 40 * BATCHES, 20_000_000
    require(claim, least <= requests <= most, f"runs of {least} to {most} requests", f"requests is {requests}")
    require(claim, 2 <= replications <= 10_000, "2 to 10000 replications", f"replications is {replications}")
