"""Requests that wait together: tick, frozen phases, spacing, and the pool without any timer (SBS, section 3)."""

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
from lbopt.theory.claim import Claim
from lbopt.theory.claims.waiting_immediate import GRID, INSTANCES, LOADS
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require
from lbopt.theory.laws.waiting import (
    frozen_pool_variance,
    frozen_pool_wait,
    spacing_variance,
    spacing_wait,
    tick_wait,
    uniform_variance,
)
from lbopt.theory.verdict import Verdict


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


CLAIMS: tuple[Claim, ...] = (
    Claim(
        name="waiting-lattice",
        title="Evenly staggered starts wait T/(2N)",
        source="SBS, section 3.2",
        statement=r"All wait together and passes start on the lattice of step $T/N$, filled or not: $W\sim U[0,T/N]$, "
        r"so $\mathbb E[W]=\frac T{2N}$ and $\mathrm{Var}\,W=\frac{T^2}{12N^2}$, at every load.",
        refuted_by="A mean or variance outside its joint 99.99 % region.",
        measure=_lattice,
        quick=[{"N": 1}, {"N": 4, "load": 0.5}, {"load": 0.05}, {"N": 32, "load": 8.0}],
        full=[{**point, "requests": 500_000} for point in GRID],
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="waiting-frozen-pool",
        title="Late binding alone, with phases that never move, waits T/(N+1)",
        source="lbopt; SBS, section 3.2",
        statement=r"All wait together and each instance starts every $T$ at its own phase, independent and uniform: "
        r"$\mathbb E[W]=\frac T{N+1}$, $\mathrm{Var}\,W=\frac{NT^2}{(N+1)^2(N+2)}$, so that even phases are worth the "
        r"factor $\frac{2N}{N+1}<2$.",
        refuted_by="A mean or variance over random phases outside its joint 99.99 % region.",
        measure=_frozen_pool,
        quick=[{"N": 1}, {"N": 4}, {"load": 8.0}, {"N": 32}],
        full=[{"N": N, "load": load, "replications": 2_000} for N in INSTANCES for load in LOADS],
        expected=Verdict.HOLDS,
        remark="Against immediate dispatch (T/2), late binding gives the factor (N+1)/2 and the stagger at most 2 "
        "more.",
    ),
    Claim(
        name="waiting-spacing",
        title="Spacing waits 1/N of immediate dispatch at every load",
        source="lbopt; SBS, section 3.3",
        statement=r"A dispatch needs a free instance and $T/N$ since the last dispatch: "
        r"$\mathbb E[W]=\frac T{2N}\,\frac{\Lambda T}{\Lambda T+e^{-\Lambda T}}=\frac1N\mathbb E[W_{imm}]$, and the "
        r"variance is $\frac1{N^2}$ of that of immediate dispatch.",
        refuted_by="A mean or variance outside its joint 99.99 % region.",
        measure=_spacing,
        quick=[{"N": 1}, {"N": 4, "load": 0.5}, {"load": 0.05}, {"N": 32, "load": 8.0}],
        full=[{**point, "requests": 500_000} for point in GRID],
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="waiting-unspaced-pool",
        title="A busy pool without a timer evens out by itself",
        source="lbopt; SBS, section 3.2",
        statement=r"The first free instance takes all who wait. From random phases the mean wait comes, in a long run, "
        r"to within a quarter of $\frac T{2N}$, below the $\frac T{N+1}$ of frozen phases: its last quarter waits no "
        r"longer than its first, and no less than spacing ($2\le\Lambda T\le10$).",
        refuted_by="A last quarter that waits longer than the first, longer than 1.25 T/(2N), or less than spacing.",
        measure=_unspaced_pool,
        quick=[{"load": 2.0}, {"load": 8.0}, {"N": 4, "load": 4.0}],
        full=[
            {"N": N, "load": load, "requests": requests}
            for N, requests in ((3, 400_000), (4, 400_000), (10, 1_500_000), (16, 1_500_000), (32, 3_000_000))
            for load in (2.0, 4.0, 8.0)
        ],
        expected=Verdict.HOLDS,
        remark="So in the long run a timer is worth 2 to 20 % of the wait at busy instances; what it does at once is "
        "to make the first phases not matter. At load 2 to 4 they are forgotten within the first quarter of these "
        "runs; at load 8 and N = 32 the wait still falls in the last one.",
    ),
    Claim(
        name="waiting-saturated-pool",
        title="A pool that never idles keeps its phases",
        source="lbopt; SBS, section 3.2",
        statement=r"While more wait than the next pass can hold, every start of a pass is at its instance's first "
        r"phase plus a whole number of $T$.",
        refuted_by="One start away from the phases.",
        measure=_saturated_pool,
        quick=[{}],
        full=[{"N": N, "requests": 200_000} for N in (2, 10, 32)],
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="waiting-pool-light-load",
        title="At light load spacing loses to the plain pool, and the idle bypass mends it",
        source="lbopt; SBS, sections 3.3 and 11",
        statement=r"At $\Lambda T\le\frac12$ and $N\ge4$ the pool without spacing waits at most half as long as "
        r"spacing, and so does spacing that serves whoever finds an idle instance at once; the two differ by at most a "
        r"tenth of the wait under spacing.",
        refuted_by="A mean difference on the wrong side by more than its joint 99.99 % region.",
        measure=_light_pool,
        quick=[{"load": 0.05}, {}],
        full=[{"N": N, "load": load, "requests": 2_000_000} for N in (4, 10, 32) for load in (0.05, 0.2, 0.5)],
        expected=Verdict.HOLDS,
    ),
)
