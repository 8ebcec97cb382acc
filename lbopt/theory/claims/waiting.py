"""How long requests wait for a pass: bound on arrival, or together (SBS, section 3).

Requests bound to an instance on arrival: random split, round-robin, the shortest queue (SBS, section 3).

Requests that wait together: tick, frozen phases, spacing, and the pool without any timer (SBS, section 3).
"""

from __future__ import annotations

import numpy as np

from lbopt.theory.chains.waiting_runs import (
    Traffic,
    over_replications,
    quarters,
    regime_of,
    require_gates,
    spread,
    steady,
)
from lbopt.theory.claim import Claim, claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require
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

INSTANCES = (1, 2, 4, 8, 10, 16, 32)
LOADS = (0.05, 0.5, 2.0, 8.0)
GRID = [{"N": N, "load": load} for N in INSTANCES for load in LOADS]


def _single_server(*, load: float = 0.8, requests: int = 1_000_000, seed: int) -> list[Finding]:
    name = "waiting-single-server"
    require_gates(name, 1, load, requests)
    require(name, load < 0.99, "a load below 0.99: one request a pass", f"load is {load}")
    wait = Traffic.poisson(1, load, requests, seed).waits("random", capacity=1)
    found = steady(wait)
    return [found.finding(f"rho={load:g}", "mean wait, passes", single_server_wait(load), note=spread(wait))]


def _immediate(*, N: int = 10, load: float = 2.0, requests: int = 200_000, seed: int) -> list[Finding]:
    require_gates("waiting-immediate", N, load, requests)
    traffic, regime = Traffic.poisson(N, load, requests, seed), regime_of(N, load)
    wait, clocked = traffic.waits("random"), traffic.waits("random-back-to-back")
    mean, clocked_mean = immediate_wait(load), back_to_back_wait()
    return [
        steady(wait).finding(regime, "mean wait, passes", mean, note=spread(wait)),
        steady((wait - mean) ** 2).finding(regime, "variance, passes^2", immediate_variance(load)),
        steady((wait > 0).astype(np.float64)).finding(regime, "share that find a pass running", busy_share(load)),
        steady(clocked).finding(regime, "mean wait back to back, passes", clocked_mean, note=spread(clocked)),
        steady((clocked - clocked_mean) ** 2).finding(regime, "variance back to back, passes^2", uniform_variance(1.0)),
    ]


def _bounded(
    *, N: int = 10, load: float = 3.2, capacity: int = 4, requests: int = 1_000_000, seed: int
) -> list[Finding]:
    name = "waiting-bounded-passes"
    require_gates(name, N, load, requests, capacity)
    require(name, 1 <= capacity <= 64, "a capacity of 1 to 64 requests a pass", f"capacity is {capacity}")
    require(name, load <= 0.98 * capacity, "a load of at most 0.98 of the capacity", f"load is {load}")
    traffic, regime = Traffic.poisson(N, load, requests, seed), regime_of(N, load, capacity)
    bound, spaced = traffic.waits("random", capacity), traffic.waits("spacing", capacity)
    exact = bounded_wait(load, capacity)
    return [
        steady(bound).finding(regime, "mean wait, random split, passes", exact, note=spread(bound)),
        steady(spaced).finding(regime, "mean wait, spacing, passes", exact / N, note=spread(spaced)),
    ]


def _many_servers(*, N: int = 10, load: float = 0.8, requests: int = 400_000, seed: int) -> list[Finding]:
    name = "waiting-many-servers"
    require_gates(name, N, load, requests)
    require(name, load <= 0.98, "a load of at most 0.98: one request a pass", f"load is {load}")
    require(name, N <= 64, "at most 64 instances", f"N is {N}")
    exact = many_servers_wait(N, load)
    require(name, exact > 1e-4, "a load at which requests wait more than 0.0001 passes", f"they wait {exact:.2g}")
    wait = Traffic.poisson(N, load, requests, seed).waits("pool", capacity=1)
    found, regime = steady(wait), regime_of(N, load, 1)
    return [
        found.finding(regime, "mean wait, passes", exact, note=spread(wait)),
        found.finding(regime, "mean wait against N queues of their own", single_server_wait(load), "<="),
    ]


def _round_robin(*, N: int = 10, load: float = 2.0, requests: int = 200_000, seed: int) -> list[Finding]:
    name = "waiting-round-robin"
    require_gates(name, N, load, requests)
    require(name, N <= 256, "at most 256 instances, the states of its chain", f"N is {N}")
    require(name, load <= 50, "a load of at most 50", f"load is {load}")
    exact = round_robin_wait(N, load)
    require(name, exact > 1e-4, "a load at which requests wait more than 0.0001 passes", f"they wait {exact:.2g}")
    wait = Traffic.poisson(N, load, requests, seed).waits("round-robin")
    return [steady(wait).finding(regime_of(N, load), "mean wait, passes", exact, note=spread(wait))]


def _no_worse_than_random(name: str, rule: str, N: int, load: float, requests: int, seed: int) -> list[Finding]:
    require_gates(name, N, load, requests)
    traffic = Traffic.poisson(N, load, requests, seed)
    ruled, split = traffic.waits(rule), traffic.waits("random")
    note = f"{rule}: {spread(ruled)}; random split: {spread(split)}"
    quantity = f"mean wait, {rule} less random split, passes"
    return [steady(ruled - split).finding(regime_of(N, load), quantity, 0.0, "<=", note=note)]


def _round_robin_order(*, N: int = 10, load: float = 2.0, requests: int = 200_000, seed: int) -> list[Finding]:
    return _no_worse_than_random("waiting-round-robin-no-worse", "round-robin", N, load, requests, seed)


def _jsq_order(*, N: int = 10, load: float = 8.0, requests: int = 100_000, seed: int) -> list[Finding]:
    return _no_worse_than_random("waiting-jsq-no-worse", "jsq", N, load, requests, seed)


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


def _lattice(*, N: int = 10, load: float = 2.0, requests: int = 200_000, seed: int) -> list[Finding]:
    require_gates("waiting-lattice", N, load, requests)
    wait, regime = Traffic.poisson(N, load, requests, seed).waits("tick"), regime_of(N, load)
    mean = tick_wait(N)
    return [
        steady(wait).finding(regime, "mean wait, passes", mean, note=spread(wait)),
        steady((wait - mean) ** 2).finding(regime, "variance, passes^2", uniform_variance(1 / N)),
    ]


def _frozen_pool(
    *, N: int = 10, load: float = 2.0, requests: int = 2_000, replications: int = 400, seed: int
) -> list[Finding]:
    require_gates("waiting-frozen-pool", N, load, requests, replications=replications)
    mean, regime = frozen_pool_wait(N), regime_of(N, load)
    runs = np.empty((replications, 3))
    for replication in range(replications):
        traffic = Traffic.poisson(N, load, requests, seed, replication)
        wait, even = traffic.waits("frozen-pool"), traffic.waits("tick")
        runs[replication] = wait.mean(), ((wait - mean) ** 2).mean(), even.mean()
    trials = replications * requests
    worth = 2 * N / (N + 1)
    return [
        over_replications(runs[:, 0], trials).finding(regime, "mean wait, passes", mean),
        over_replications(runs[:, 1], trials).finding(regime, "variance, passes^2", frozen_pool_variance(N)),
        over_replications(runs[:, 0] - worth * runs[:, 2], trials).finding(
            regime, "mean wait less 2N / (N + 1) times that of even phases, passes", 0.0
        ),
    ]


def _spacing(*, N: int = 10, load: float = 2.0, requests: int = 200_000, seed: int) -> list[Finding]:
    require_gates("waiting-spacing", N, load, requests)
    traffic, regime = Traffic.poisson(N, load, requests, seed), regime_of(N, load)
    wait, bound = traffic.waits("spacing"), traffic.waits("random")
    mean = spacing_wait(N, load)
    return [
        steady(wait).finding(regime, "mean wait, passes", mean, note=spread(wait)),
        steady((wait - mean) ** 2).finding(regime, "variance, passes^2", spacing_variance(N, load)),
        steady(bound - N * wait).finding(regime, "wait of random split less N times that of spacing, passes", 0.0),
    ]


def _unspaced_pool(
    *,
    N: int = 10,
    load: float = 8.0,
    requests: int = 400_000,
    replications: int = 20,
    close: float = 0.25,
    seed: int,
) -> list[Finding]:
    name = "waiting-unspaced-pool"
    require_gates(name, N, load, requests, replications=replications)
    require(name, N >= 2, "a pool of at least 2 instances", f"N is {N}")
    require(name, 2 <= load <= 10, "busy instances that still fall idle: a load from 2 to 10", f"load is {load}")
    require(name, close > 0, "a share above 0 by which the wait may exceed T/(2N)", f"close is {close}")
    found = quarters(N, load, 0, requests, replications, seed)
    regime, trials = regime_of(N, load), replications * requests // 4
    course = "by quarter: " + " ".join(f"{mean:.4f}" for mean in found.mean(axis=0))
    last = over_replications(found[:, 3], trials)
    return [
        over_replications(found[:, 3] - found[:, 0], trials).finding(
            regime, "mean wait, last quarter less first, passes", 0.0, "<=", note=course
        ),
        last.finding(regime, "mean wait in the last quarter against frozen phases", frozen_pool_wait(N), "<="),
        last.finding(regime, f"the same against {1 + close:g} T/(2N)", (1 + close) * tick_wait(N), "<="),
        last.finding(regime, "the same against spacing", spacing_wait(N, load), ">="),
    ]


def _saturated_pool(
    *, N: int = 10, load: float = 6.0, capacity: int = 4, requests: int = 20_000, seed: int
) -> list[Finding]:
    name = "waiting-saturated-pool"
    require_gates(name, N, load, requests)
    require(name, 1 <= capacity < load, "more requests than passes can hold", f"load is {load}, capacity {capacity}")
    traffic = Traffic.poisson(N, load, requests, seed)
    # Phases in whole 2^-20 add up without rounding; half of the requests are there when the first instance is free.
    phases = np.sort(np.random.default_rng([seed, 3]).choice(1 << 20, N, replace=False)) / (1 << 20)
    arrival = np.concatenate([np.zeros(requests // 2), traffic.arrival[: requests // 2]])
    starts = arrival + Traffic(arrival, traffic.uniforms, phases).waits("pool", capacity)
    full = starts[: requests // 2]  # no instance idles while these are served
    off = ~np.isin(full % 1.0, phases)
    return [
        Finding(
            regime=regime_of(N, load, capacity),
            quantity="starts away from the phase of their instance",
            kind="exact",
            relation="<=",
            measured=float(off.mean()),
            predicted=0.0,
            trials=full.size,
            violations=int(off.sum()),
        )
    ]


def _light_pool(*, N: int = 10, load: float = 0.5, requests: int = 200_000, seed: int) -> list[Finding]:
    name = "waiting-pool-light-load"
    require_gates(name, N, load, requests)
    require(name, N >= 4, "a pool of at least 4 instances", f"N is {N}")
    require(name, load <= 0.5, "light load: at most 0.5", f"load is {load}")
    traffic, regime = Traffic.poisson(N, load, requests, seed), regime_of(N, load)
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
