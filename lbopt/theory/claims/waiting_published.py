"""The published claim about waiting, where it holds and where not, and values of earlier simulations (SBS, section 3).

The published claim, T/2 against T/(2N), in its regime and in those where it does not hold (SBS, section 3).

Values of earlier simulations, found again: a table of waits (SBS, section 3.5), by another program.

Both sides are sampled, so a row is judged with the joint error: that of the runs here, the same for one run of the
length that the table states, and the rounding of the printed number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.theory.chains.waiting_runs import (
    INTERFACES,
    Average,
    Floats,
    Traffic,
    over_replications,
    regime_of,
    require_gates,
    spread,
    steady,
)
from lbopt.theory.claim import Claim, claim
from lbopt.theory.claims.waiting import GRID, INSTANCES
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require
from lbopt.theory.laws.waiting import back_to_back_wait, break_even_load, immediate_wait, tick_wait


def _published(*, N: int = 10, load: float = 8.0, requests: int = 200_000, seed: int) -> list[Finding]:
    require_gates("waiting-published", N, load, requests)
    traffic, regime = Traffic.poisson(N, load, requests, seed), regime_of(N, load)
    bound, tick = traffic.waits("random-back-to-back"), traffic.waits("tick")
    return [
        steady(bound).finding(regime, "mean wait, immediate, passes", back_to_back_wait(), note=spread(bound)),
        steady(tick).finding(regime, "mean wait, staggered, passes", tick_wait(N), note=spread(tick)),
        steady(bound - N * tick).finding(regime, "immediate less N times staggered, passes", 0.0),
    ]


def _any_load(*, N: int = 10, load: float = 0.5, requests: int = 200_000, seed: int) -> list[Finding]:
    name = "waiting-published-any-load"
    require_gates(name, N, load, requests)
    traffic, regime = Traffic.poisson(N, load, requests, seed), regime_of(N, load)
    bound, spaced = traffic.waits("random"), traffic.waits("spacing")
    return [
        steady(bound).finding(regime, "mean wait, immediate, passes", back_to_back_wait(), note=spread(bound)),
        steady(spaced).finding(regime, "mean wait, spacing, passes", tick_wait(N), note=spread(spaced)),
    ]


def _never_worse(*, N: int = 10, load: float = 0.05, requests: int = 200_000, seed: int) -> list[Finding]:
    require_gates("waiting-tick-never-worse", N, load, requests)
    traffic, regime = Traffic.poisson(N, load, requests, seed), regime_of(N, load)
    tick, bound = traffic.waits("tick"), traffic.waits("random")
    note = f"means: tick {tick.mean():.3g}, immediate {bound.mean():.3g}"
    return [steady(tick - bound).finding(regime, "wait, tick less immediate, passes", 0.0, "<=", note=note)]


def _light_load(*, N: int = 10, share: float = 1.0, requests: int = 400_000, seed: int) -> list[Finding]:
    name = "waiting-tick-light-load"
    require(name, N >= 2, "at least 2 instances: with one the tick is worse at every load", f"N is {N}")
    require(name, 0 < share <= 20, "a load of 0 to 20 times the break-even load", f"share is {share}")
    load = share * break_even_load(N)
    require_gates(name, N, load, requests)
    traffic = Traffic.poisson(N, load, requests, seed)
    lost = steady(traffic.waits("tick") - traffic.waits("random"))
    regime = f"{regime_of(N, load)}, {share:g} of break-even"
    relation = "=" if share == 1 else ">=" if share < 1 else "<="
    exact = tick_wait(N) - immediate_wait(load)
    return [
        lost.finding(regime, "wait, tick less immediate, passes", 0.0, relation),
        lost.finding(regime, "the same against the closed forms", exact),
    ]


def _gain(
    *,
    N: int = 10,
    load: float = 3.8,
    capacity: int = 4,
    rule: str = "round-robin",
    requests: int = 1_000_000,
    seed: int,
) -> list[Finding]:
    name = "waiting-published-gain"
    require_gates(name, N, load, requests, capacity)
    rules = ("random", "round-robin", "jsq")
    require(name, rule in rules, f"an immediate rule out of {', '.join(rules)}", f"rule is {rule}")
    traffic, regime = Traffic.poisson(N, load, requests, seed), regime_of(N, load, capacity)
    bound, spaced, pool = (traffic.waits(each, capacity) for each in (rule, "spacing", "pool"))
    bound_mean, spaced_mean, pool_mean = (steady(each).mean for each in (bound, spaced, pool))
    note = (
        f"means: {rule} {bound_mean:.3g}, spacing {spaced_mean:.3g}, pool {pool_mean:.3g}: "
        f"gain {bound_mean / spaced_mean:.3g}x over {rule}, {pool_mean / spaced_mean:.3g}x over the pool"
    )
    quantity = f"{rule} less N times spacing, passes"
    return [steady(bound - N * spaced).finding(regime, quantity, 0.0, ">=", note=note)]


_PUBLISHED: tuple[Claim, ...] = (
    claim(
        "waiting-published",
        _published,
        quick=[{"N": 1}, {"N": 3}, {}, {"N": 32, "load": 0.5}],
        full=[{**point, "requests": 500_000} for point in GRID],
    ),
    claim(
        "waiting-published-any-load",
        _any_load,
        quick=[{"load": 0.05}, {}],
        full=[{"N": N, "load": load, "requests": 500_000} for N in (2, 10, 32) for load in (0.05, 0.5, 2.0, 8.0)],
    ),
    claim(
        "waiting-tick-never-worse",
        _never_worse,
        quick=[{}],
        full=[{"N": N, "load": load, "requests": 500_000} for N in INSTANCES for load in (0.01, 0.05, 0.5)],
    ),
    claim(
        "waiting-tick-light-load",
        _light_load,
        quick=[{"N": 2}, {"share": 0.5}, {}, {"share": 2.0}],
        full=[
            {"N": N, "share": share, "requests": 1_000_000}
            for N in INSTANCES[1:]
            for share in (0.5, 0.8, 1.0, 1.2, 2.0)
        ],
    ),
    claim(
        "waiting-published-gain",
        _gain,
        quick=[{}],
        full=[{"load": 4 * rho, "requests": 2_000_000} for rho in (0.5, 0.8, 0.9, 0.95)]
        + [{"load": 3.8, "requests": 1_000_000, "rule": rule} for rule in ("random", "jsq")],
    ),
)


#: Which part of a run is averaged: after the first tenth, from the start, or a quarter of it.
PARTS = ("steady", "all", "first quarter", "second quarter", "third quarter", "last quarter")


def _reference(
    *,
    interface: str = "random",
    N: int = 10,
    load: float = 0.5,
    capacity: int = 0,
    part: str = "steady",
    requests: int = 200_000,
    replications: int = 1,
    printed: float = 0.2263,
    digits: int = 4,
    seed: int,
) -> list[Finding]:
    name = "waiting-reference-values"
    require_gates(name, N, load, requests, capacity, replications=max(2, replications))
    require(name, interface in INTERFACES, f"an interface out of {', '.join(INTERFACES)}", f"interface is {interface}")
    require(name, part in PARTS, f"a part of the run out of {', '.join(PARTS)}", f"part is {part}")
    long_run = replications == 1
    require(name, not long_run or part == "steady", "several runs for the part named", f"part is {part}, one run")
    require(name, replications >= 1, "at least one run", f"replications is {replications}")
    require(name, 0 <= digits <= 9, "0 to 9 printed digits", f"digits is {digits}")
    require(name, 0 <= printed < 1e6, "a printed mean of 0 to 1000000 passes", f"printed is {printed}")
    first = Traffic.poisson(N, load, requests, seed)
    wait = first.waits(interface, capacity)
    if long_run:
        found = steady(wait)
        theirs = found.error
    else:
        runs = (Traffic.poisson(N, load, requests, seed, each) for each in range(replications))
        found = over_replications(
            [float(_of(part, run.waits(interface, capacity)).mean()) for run in runs], requests * replications
        )
        theirs = found.error * replications**0.5
    rounding = 10.0**-digits / 12**0.5
    joint = Average(found.mean, float(np.hypot(np.hypot(found.error, theirs), rounding)), found.dof, found.trials)
    regime = f"{interface}, {regime_of(N, load, capacity)}"
    note = f"own error {found.error:.2g}; {spread(wait)}; {first.account(interface, capacity)}"
    return [joint.finding(regime, f"mean wait, {part}, passes", printed, note=note)]


def _of(part: str, run: Floats) -> Floats:
    if part in ("steady", "all"):
        return run[run.size // 10 :] if part == "steady" else run
    quarter = run.size // 4
    at = PARTS.index(part) - 2
    return run[at * quarter : (at + 1) * quarter]


def _rows(interface: str, printed: dict[float, float], **given: Any) -> list[dict[str, Any]]:
    return [{"interface": interface, "load": load, "printed": value, **given} for load, value in printed.items()]


def _per_fleet(interface: str, printed: dict[int, float], **given: Any) -> list[dict[str, Any]]:
    return [{"interface": interface, "N": N, "load": 2.0, "printed": value, **given} for N, value in printed.items()]


_LONG = {"part": "last quarter", "requests": 1_500_000, "replications": 10}
_WIDE = {"N": 32, "requests": 1_500_000, "replications": 20}
_FOUR = {"capacity": 4, "digits": 3}

_UNLIMITED = [
    *_rows("random", {0.05: 0.0253, 0.5: 0.2263, 2.0: 0.4695, 8.0: 0.4995}),
    *_rows("round-robin", {0.5: 0.0049, 2.0: 0.5004}),
    *_per_fleet("tick", {1: 0.4995, 2: 0.2497, 4: 0.1248, 10: 0.0499, 32: 0.0156}),
    *_rows("spacing", {0.05: 0.0025, 0.5: 0.0226, 2.0: 0.0468, 8.0: 0.0500}),
    *_rows("tick", {0.05: 0.05, 0.5: 0.05, 2.0: 0.05, 8.0: 0.0499}, requests=400_000),
]
_FROZEN = _per_fleet(
    "frozen-pool",
    {1: 0.5001, 2: 0.3340, 4: 0.2003, 10: 0.0905, 32: 0.0303},
    part="all",
    requests=2_000,
    replications=100,
)
_POOL = [
    *_rows("pool", {0.05: 0.0, 0.5: 0.0023, 2.0: 0.0568, 4.0: 0.0556, 8.0: 0.0515}, **_LONG),
    *_rows("pool", {8.0: 0.075}, part="all", requests=20_000, replications=100, digits=3),
    *_rows("pool", {8.0: 0.059}, part="all", requests=200_000, replications=50, digits=3),
    *_rows("pool", {2.0: 0.175, 8.0: 0.171}, N=3, digits=3, **_LONG),
    *_rows("pool", {8.0: 0.0231}, part="first quarter", **_WIDE),
    *_rows("pool", {8.0: 0.0194}, part="second quarter", **_WIDE),
    *_rows("pool", {8.0: 0.0185}, part="third quarter", **_WIDE),
    *_rows("pool", {8.0: 0.0177}, part="last quarter", **_WIDE),
]
_BOUNDED = [
    *_rows("random", {2.0: 0.517, 3.2: 0.877}, requests=4_000_000, **_FOUR),
    *_rows("random", {3.6: 1.49, 3.8: 2.79}, requests=4_000_000, capacity=4, digits=2),
    *_rows("round-robin", {2.0: 0.500, 3.2: 0.509, 3.6: 0.557, 3.8: 0.673}, requests=2_000_000, **_FOUR),
    *_rows("spacing", {2.0: 0.052, 3.2: 0.087, 3.6: 0.151, 3.8: 0.277}, requests=2_000_000, **_FOUR),
    *_rows("pool", {2.0: 0.068, 3.2: 0.104, 3.6: 0.166, 3.8: 0.291}, requests=2_000_000, **_FOUR),
    *_rows("random", {0.5: 0.503}, N=1, capacity=1, requests=3_000_000, digits=3),
    *_rows("random", {0.8: 2.00, 0.9: 4.52}, N=1, capacity=1, requests=3_000_000, digits=2),
    *_rows("pool", {0.5: 0.0047}, capacity=1, requests=3_000_000),
    *_rows("pool", {0.8: 0.109, 0.9: 0.340}, capacity=1, requests=3_000_000, digits=3),
]

_FOUND_AGAIN: tuple[Claim, ...] = (
    claim(
        "waiting-reference-values",
        _reference,
        quick=[*_UNLIMITED, *_FROZEN],
        full=[*_UNLIMITED, *_FROZEN, *_POOL, *_BOUNDED],
    ),
)
CLAIMS = (*_PUBLISHED, *_FOUND_AGAIN)
