"""How long requests wait for a pass: bound on arrival, or together (SBS, section 3).

Requests bound to an instance on arrival: random split, round-robin, the shortest queue (SBS, section 3).

Requests that wait together: tick, frozen phases, spacing, and the pool without any timer (SBS, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lbopt.theory.chains.batch_means import Average
from lbopt.theory.chains.waiting_runs import BATCHES, Traffic, spread, steady
from lbopt.theory.claim import Claim, claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.waiting import (
    back_to_back_wait,
    bounded_wait,
    busy_share,
    frozen_pool_variance,
    frozen_pool_wait,
    immediate_variance,
    immediate_wait,
    many_servers_wait,
    round_robin_wait,
    single_server_wait,
    spacing_variance,
    spacing_wait,
    tick_wait,
    uniform_variance,
)
from lbopt.theory.regime import Asked, Asks, Regime, at_least, between, measured_in, require

INSTANCES = (1, 2, 4, 8, 10, 16, 32)
LOADS = (0.05, 0.5, 2.0, 8.0)
GRID = [{"N": N, "load": load} for N in INSTANCES for load in LOADS]


@dataclass(frozen=True, kw_only=True)
class Gates(Regime):
    """Gated instances that meet Poisson arrivals.

    Parameters
    ----------
    N
        Number of instances.
    load
        Requests per instance and pass.
    requests
        Requests of a run.
    capacity
        Most requests of a pass; 0 for no limit.
    replications
        Number of runs.
    """

    N: int = 10
    load: float = 2.0
    requests: int = 200_000
    capacity: int = 0
    replications: int = 2
    asks: ClassVar[Asks] = {
        "N": between(1, 1024, "1 to 1024 instances"),
        "load": between(0.001, 1000, "a load of 0.001 to 1000 requests per instance and pass"),
        "requests": between(40 * BATCHES, 20_000_000, f"runs of {40 * BATCHES} to 20000000 requests"),
        "capacity": at_least(0, "a capacity of at least 1 request a pass, or 0 for no limit"),
        "replications": between(1, 10_000, "1 to 10000 replications"),
    }

    def require(self, claim: str) -> None:
        """Refuse passes that cannot hold all who come: there is no steady state."""
        super().require(claim)
        self.require_room(claim)

    def require_room(self, claim: str) -> None:
        """Refuse a capacity that is none, or no more than the load."""
        room = "passes that can hold all who come: a load below the capacity"
        fits = self.capacity == 0 or self.load < self.capacity
        require(claim, fits, room, f"load is {self.load} and capacity is {self.capacity}")

    def traffic(self, seed: int, replication: int = 0) -> Traffic:
        """Return what every interface meets."""
        return Traffic.poisson(self.N, self.load, self.requests, seed, replication)

    def __str__(self) -> str:
        """Return the gates in the words of the report."""
        return f"N={self.N}, load={self.load:.4g}" + (f", c={self.capacity}" if self.capacity else "")


#: Passes without limit, looked at in one run.
OPEN = ("capacity", "replications")
_ONE_RUN = ("replications",)


@measured_in(
    "waiting-single-server",
    Gates,
    without=("N", *OPEN),
    asks={"load": (Asked(lambda load: load < 0.99, "a load below 0.99: one request a pass"),)},
    N=1,
    load=0.8,
    requests=1_000_000,
)
def _single_server(at: Gates, seed: int) -> list[Finding]:
    wait = at.traffic(seed).waits("random", capacity=1)
    mean = single_server_wait(at.load)
    return [steady(wait).finding(f"rho={at.load:g}", "mean wait, passes", mean, note=spread(wait))]


@measured_in("waiting-immediate", Gates, without=OPEN)
def _immediate(at: Gates, seed: int) -> list[Finding]:
    traffic, regime, load = at.traffic(seed), str(at), at.load
    wait, clocked = traffic.waits("random"), traffic.waits("random-back-to-back")
    mean, clocked_mean = immediate_wait(load), back_to_back_wait()
    return [
        steady(wait).finding(regime, "mean wait, passes", mean, note=spread(wait)),
        steady((wait - mean) ** 2).finding(regime, "variance, passes^2", immediate_variance(load)),
        steady((wait > 0).astype(np.float64)).finding(regime, "share that find a pass running", busy_share(load)),
        steady(clocked).finding(regime, "mean wait back to back, passes", clocked_mean, note=spread(clocked)),
        steady((clocked - clocked_mean) ** 2).finding(regime, "variance back to back, passes^2", uniform_variance(1.0)),
    ]


@measured_in(
    "waiting-bounded-passes",
    Gates,
    without=_ONE_RUN,
    asks={"capacity": between(1, 64, "a capacity of 1 to 64 requests a pass")},
    load=3.2,
    requests=1_000_000,
    capacity=4,
)
def _bounded(at: Gates, seed: int) -> list[Finding]:
    load, capacity, traffic, regime = at.load, at.capacity, at.traffic(seed), str(at)
    most = "a load of at most 0.98 of the capacity"
    require("waiting-bounded-passes", load <= 0.98 * capacity, most, f"load is {load}")
    bound, spaced = traffic.waits("random", capacity), traffic.waits("spacing", capacity)
    exact = bounded_wait(load, capacity)
    return [
        steady(bound).finding(regime, "mean wait, random split, passes", exact, note=spread(bound)),
        steady(spaced).finding(regime, "mean wait, spacing, passes", exact / at.N, note=spread(spaced)),
    ]


def _require_wait(claim: str, exact: float) -> float:
    require(claim, exact > 1e-4, "a load at which requests wait more than 0.0001 passes", f"they wait {exact:.2g}")
    return exact


@measured_in(
    "waiting-many-servers",
    Gates,
    without=OPEN,
    asks={
        "load": between(0, 0.98, "a load of at most 0.98: one request a pass"),
        "N": between(1, 64, "at most 64 instances"),
    },
    load=0.8,
    requests=400_000,
)
def _many_servers(at: Gates, seed: int) -> list[Finding]:
    exact = _require_wait("waiting-many-servers", many_servers_wait(at.N, at.load))
    wait = at.traffic(seed).waits("pool", capacity=1)
    found, regime = steady(wait), str(replace(at, capacity=1))
    return [
        found.finding(regime, "mean wait, passes", exact, note=spread(wait)),
        found.finding(regime, "mean wait against N queues of their own", single_server_wait(at.load), "<="),
    ]


@measured_in(
    "waiting-round-robin",
    Gates,
    without=OPEN,
    asks={
        "N": between(1, 256, "at most 256 instances, the states of its chain"),
        "load": between(0, 50, "a load of at most 50"),
    },
)
def _round_robin(at: Gates, seed: int) -> list[Finding]:
    exact = _require_wait("waiting-round-robin", round_robin_wait(at.N, at.load))
    wait = at.traffic(seed).waits("round-robin")
    return [steady(wait).finding(str(at), "mean wait, passes", exact, note=spread(wait))]


def _no_worse_than_random(rule: str, at: Gates, seed: int) -> list[Finding]:
    traffic = at.traffic(seed)
    ruled, split = traffic.waits(rule), traffic.waits("random")
    note = f"{rule}: {spread(ruled)}; random split: {spread(split)}"
    quantity = f"mean wait, {rule} less random split, passes"
    return [steady(ruled - split).finding(str(at), quantity, 0.0, "<=", note=note)]


@measured_in("waiting-round-robin-no-worse", Gates, without=OPEN)
def _round_robin_order(at: Gates, seed: int) -> list[Finding]:
    return _no_worse_than_random("round-robin", at, seed)


@measured_in("waiting-jsq-no-worse", Gates, without=OPEN, load=8.0, requests=100_000)
def _jsq_order(at: Gates, seed: int) -> list[Finding]:
    return _no_worse_than_random("jsq", at, seed)


_BOUND: tuple[Claim, ...] = (
    claim(
        "waiting-single-server",
        _single_server,
        quick=[{"load": 0.5}, {"load": 0.8}],
        full=[{"load": load, "requests": 3_000_000} for load in (0.5, 0.8, 0.9)],
    ),
    claim(
        "waiting-many-servers",
        _many_servers,
        quick=[{"load": 0.5}, {}, {"N": 2, "load": 0.7}],
        full=[{"N": N, "load": load, "requests": 3_000_000} for N in (1, 2, 10, 32) for load in (0.8, 0.9)],
    ),
    claim(
        "waiting-immediate",
        _immediate,
        quick=[{"N": 1, "load": 0.5}, {"N": 4, "load": 2.0}, {"load": 0.05}, {"load": 8.0}],
        full=[{**point, "requests": 500_000} for point in GRID],
    ),
    claim(
        "waiting-bounded-passes",
        _bounded,
        quick=[{"load": 2.0, "requests": 400_000}, {"load": 3.2, "requests": 400_000}],
        full=[{"load": 4 * rho, "requests": 4_000_000} for rho in (0.5, 0.8, 0.9, 0.95)]
        + [{"N": N, "load": 0.8 * c, "capacity": c} for N, c in ((1, 1), (2, 2), (32, 16))],
    ),
    claim(
        "waiting-round-robin",
        _round_robin,
        quick=[{"load": 0.5}, {"load": 2.0}, {"N": 4, "load": 1.0}],
        full=[
            {"N": N, "load": load, "requests": 1_000_000}
            for N in INSTANCES
            for load in (0.5, 1.0, 2.0, 8.0)
            if round_robin_wait(N, load) > 1e-3
        ],
    ),
    claim(
        "waiting-round-robin-no-worse",
        _round_robin_order,
        quick=[{"load": 0.5}, {"load": 2.0}],
        full=[{"N": N, "load": load, "requests": 1_000_000} for N in (2, 10, 32) for load in (0.5, 1.0, 2.0, 4.0)],
    ),
    claim(
        "waiting-jsq-no-worse",
        _jsq_order,
        quick=[{"load": 0.5}, {"load": 8.0}],
        full=[{"N": N, "load": load, "requests": 400_000} for N in (2, 10, 32) for load in (0.5, 2.0, 8.0)],
    ),
)


@measured_in("waiting-lattice", Gates, without=OPEN)
def _lattice(at: Gates, seed: int) -> list[Finding]:
    wait, mean = at.traffic(seed).waits("tick"), tick_wait(at.N)
    return [
        steady(wait).finding(str(at), "mean wait, passes", mean, note=spread(wait)),
        steady((wait - mean) ** 2).finding(str(at), "variance, passes^2", uniform_variance(1 / at.N)),
    ]


_SEVERAL = at_least(2, "at least 2 replications")


@measured_in(
    "waiting-frozen-pool",
    Gates,
    without=("capacity",),
    asks={"replications": _SEVERAL},
    requests=2_000,
    replications=400,
)
def _frozen_pool(at: Gates, seed: int) -> list[Finding]:
    N, mean, regime = at.N, frozen_pool_wait(at.N), str(at)
    runs = np.empty((at.replications, 3))
    for replication in range(at.replications):
        traffic = at.traffic(seed, replication)
        wait, even = traffic.waits("frozen-pool"), traffic.waits("tick")
        runs[replication] = wait.mean(), ((wait - mean) ** 2).mean(), even.mean()
    trials, worth = at.replications * at.requests, 2 * N / (N + 1)
    return [
        Average.of(runs[:, 0], trials).finding(regime, "mean wait, passes", mean),
        Average.of(runs[:, 1], trials).finding(regime, "variance, passes^2", frozen_pool_variance(N)),
        Average.of(runs[:, 0] - worth * runs[:, 2], trials).finding(
            regime, "mean wait less 2N / (N + 1) times that of even phases, passes", 0.0
        ),
    ]


@measured_in("waiting-spacing", Gates, without=OPEN)
def _spacing(at: Gates, seed: int) -> list[Finding]:
    N, traffic, regime = at.N, at.traffic(seed), str(at)
    wait, bound = traffic.waits("spacing"), traffic.waits("random")
    mean = spacing_wait(N, at.load)
    return [
        steady(wait).finding(regime, "mean wait, passes", mean, note=spread(wait)),
        steady((wait - mean) ** 2).finding(regime, "variance, passes^2", spacing_variance(N, at.load)),
        steady(bound - N * wait).finding(regime, "wait of random split less N times that of spacing, passes", 0.0),
    ]


@dataclass(frozen=True, kw_only=True)
class BusyGates(Gates):
    """Busy instances that still fall idle.

    Parameters
    ----------
    close
        Share by which the wait may exceed T/(2N).
    """

    load: float = 8.0
    requests: int = 400_000
    replications: int = 20
    close: float = 0.25
    asks: ClassVar[Asks] = {
        "N": at_least(2, "a pool of at least 2 instances"),
        "replications": _SEVERAL,
        "load": between(2, 10, "busy instances that still fall idle: a load from 2 to 10"),
        "close": (Asked(lambda close: close > 0, "a share above 0 by which the wait may exceed T/(2N)"),),
    }


@measured_in("waiting-unspaced-pool", BusyGates, without=("capacity",))
def _unspaced_pool(at: BusyGates, seed: int) -> list[Finding]:
    regime, trials = str(at), at.replications * at.requests // 4
    found = np.empty((at.replications, 4))  # the mean wait in each quarter of each run
    for replication in range(at.replications):
        wait = at.traffic(seed, replication).waits("pool")
        found[replication] = wait[: at.requests // 4 * 4].reshape(4, -1).mean(axis=1)
    course = "by quarter: " + " ".join(f"{mean:.4f}" for mean in found.mean(axis=0))
    last = Average.of(found[:, 3], trials)
    return [
        Average.of(found[:, 3] - found[:, 0], trials).finding(
            regime, "mean wait, last quarter less first, passes", 0.0, "<=", note=course
        ),
        last.finding(regime, "mean wait in the last quarter against frozen phases", frozen_pool_wait(at.N), "<="),
        last.finding(regime, f"the same against {1 + at.close:g} T/(2N)", (1 + at.close) * tick_wait(at.N), "<="),
        last.finding(regime, "the same against spacing", spacing_wait(at.N, at.load), ">="),
    ]


@dataclass(frozen=True, kw_only=True)
class FullGates(Gates):
    """Passes that cannot hold all who come."""

    load: float = 6.0
    requests: int = 20_000
    capacity: int = 4

    def require_room(self, claim: str) -> None:
        """Refuse passes that can hold all."""
        shown = f"load is {self.load}, capacity {self.capacity}"
        require(claim, 1 <= self.capacity < self.load, "more requests than passes can hold", shown)


@measured_in("waiting-saturated-pool", FullGates, without=_ONE_RUN)
def _saturated_pool(at: FullGates, seed: int) -> list[Finding]:
    traffic, half = at.traffic(seed), at.requests // 2
    # Phases in whole 2^-20 add up without rounding; half of the requests are there when the first instance is free.
    phases = np.sort(np.random.default_rng([seed, 3]).choice(1 << 20, at.N, replace=False)) / (1 << 20)
    arrival = np.concatenate([np.zeros(half), traffic.arrival[:half]])
    starts = arrival + Traffic(arrival, traffic.uniforms, phases).waits("pool", at.capacity)
    off = ~np.isin(starts[:half] % 1.0, phases)  # no instance idles while these are served
    return [Finding.exact(str(at), "starts away from the phase of their instance", off, measured=float(off.mean()))]


@measured_in(
    "waiting-pool-light-load",
    Gates,
    without=OPEN,
    asks={
        "N": at_least(4, "a pool of at least 4 instances"),
        "load": between(0, 0.5, "light load: at most 0.5"),
    },
    load=0.5,
)
def _light_pool(at: Gates, seed: int) -> list[Finding]:
    traffic, regime = at.traffic(seed), str(at)
    pool, bypass, spaced = (traffic.waits(each) for each in ("pool", "idle-bypass", "spacing"))
    note = f"means: pool {pool.mean():.2g}, idle bypass {bypass.mean():.2g}, spacing {spaced.mean():.2g}"
    return [
        steady(pool - spaced / 2).finding(regime, "wait of the pool less half of spacing's", 0.0, "<=", note=note),
        steady(bypass - spaced / 2).finding(regime, "wait with idle bypass less half of spacing's", 0.0, "<="),
        steady(bypass - pool - spaced / 10).finding(
            regime, "wait with idle bypass less the pool's, less a tenth of spacing's", 0.0, "<="
        ),
    ]


_TOGETHER: tuple[Claim, ...] = (
    claim(
        "waiting-lattice",
        _lattice,
        quick=[{"N": 1}, {"N": 4, "load": 0.5}, {"load": 0.05}, {"N": 32, "load": 8.0}],
        full=[{**point, "requests": 500_000} for point in GRID],
    ),
    claim(
        "waiting-frozen-pool",
        _frozen_pool,
        quick=[{"N": 1}, {"N": 4}, {"load": 8.0}, {"N": 32}],
        full=[{"N": N, "load": load, "replications": 2_000} for N in INSTANCES for load in LOADS],
    ),
    claim(
        "waiting-spacing",
        _spacing,
        quick=[{"N": 1}, {"N": 4, "load": 0.5}, {"load": 0.05}, {"N": 32, "load": 8.0}],
        full=[{**point, "requests": 500_000} for point in GRID],
    ),
    claim(
        "waiting-unspaced-pool",
        _unspaced_pool,
        quick=[{"load": 2.0}, {"load": 8.0}, {"N": 4, "load": 4.0}],
        full=[
            {"N": N, "load": load, "requests": requests}
            for N, requests in ((3, 400_000), (4, 400_000), (10, 1_500_000), (16, 1_500_000), (32, 3_000_000))
            for load in (2.0, 4.0, 8.0)
        ],
    ),
    claim(
        "waiting-saturated-pool", _saturated_pool, quick=[{}], full=[{"N": N, "requests": 200_000} for N in (2, 10, 32)]
    ),
    claim(
        "waiting-pool-light-load",
        _light_pool,
        quick=[{"load": 0.05}, {}],
        full=[{"N": N, "load": load, "requests": 2_000_000} for N in (4, 10, 32) for load in (0.05, 0.2, 0.5)],
    ),
)
CLAIMS = (*_BOUND, *_TOGETHER)
