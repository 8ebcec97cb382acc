"""The published claim, T/2 against T/(2N), in its regime and in those where it does not hold (SBS, section 3)."""

from __future__ import annotations

from lbopt.theory.chains.waiting_runs import Traffic, regime_of, require_gates, spread, steady
from lbopt.theory.claim import Claim
from lbopt.theory.claims.waiting_immediate import GRID, INSTANCES
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require
from lbopt.theory.laws.waiting import back_to_back_wait, break_even_load, immediate_wait, tick_wait
from lbopt.theory.verdict import Verdict


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


CLAIMS: tuple[Claim, ...] = (
    Claim(
        name="waiting-published",
        title="T/2 against T/(2N), under the assumptions that it needs",
        source="SBS (arXiv 2512.16134), section 3.1; assumptions A1 to A6 by lbopt",
        statement=r"Constant pass time $T$ (A1), every instance back to back (A2), passes that hold all who wait (A3), "
        r"stationary arrivals that do not look at phases (A4), no latency (A5), starts spaced evenly by $T/N$ (A6): "
        r"immediate dispatch waits $\frac T2$ on average and staggered dispatch $\frac T{2N}$.",
        refuted_by="A mean, or the difference between one and N times the other, outside its joint 99.99 % region.",
        measure=_published,
        quick=[{"N": 1}, {"N": 3}, {}, {"N": 32, "load": 0.5}],
        full=[{**point, "requests": 500_000} for point in GRID],
        expected=Verdict.HOLDS,
        remark="Of the factor N, late binding alone (one queue, phases as they are) gives (N + 1)/2; the stagger adds "
        "less than 2, and in the long run a busy pool evens out without it: see waiting-frozen-pool and "
        "waiting-unspaced-pool. Of the time to the first token it takes (1 - 1/N)/3 at most.",
    ),
    Claim(
        name="waiting-published-any-load",
        title="The same at any load, with instances that start when a request comes",
        source="SBS, section 3.1, read without A2",
        statement=r"Work-conserving instances, spacing of $T/N$ between dispatches: immediate dispatch waits $\frac "
        r"T2$ and staggered dispatch $\frac T{2N}$ at any load.",
        refuted_by="A mean outside its joint 99.99 % region at one load.",
        measure=_any_load,
        quick=[{"load": 0.05}, {}],
        full=[{"N": N, "load": load, "requests": 500_000} for N in (2, 10, 32) for load in (0.05, 0.5, 2.0, 8.0)],
        expected=Verdict.REFUTED,
        remark="Both values carry the factor P = load / (load + exp(-load)), the share of time in passes: 0.05 at load "
        "0.05, 0.45 at 0.5, 0.94 at 2. The ratio N is right at every load (waiting-spacing), both values are not.",
    ),
    Claim(
        name="waiting-tick-never-worse",
        title="A staggered tick never waits longer than immediate dispatch",
        source="SBS, section 3.1, the interval read as a tick",
        statement=r"With work-conserving instances, dispatch on a fixed lattice of step $T/N$ waits no longer than "
        r"immediate dispatch at random, at any load.",
        refuted_by="A load at which it waits longer.",
        measure=_never_worse,
        quick=[{}],
        full=[{"N": N, "load": load, "requests": 500_000} for N in INSTANCES for load in (0.01, 0.05, 0.5)],
        expected=Verdict.REFUTED,
        remark="It is worse below the load of waiting-tick-light-load; at one instance at every load.",
    ),
    Claim(
        name="waiting-tick-light-load",
        title="Where the tick starts to pay: load W(1/(N - 1))",
        source="lbopt; SBS, section 3.3, says about 1/N",
        statement=r"With work-conserving instances the tick waits longer than immediate dispatch at random exactly "
        r"below the load $\Lambda T=W_0(\frac1{N-1})=\frac1N+O(N^{-3})$, with Lambert's $W_0$.",
        refuted_by="A mean difference away from 0 at that load, or of the wrong sign beside it.",
        measure=_light_load,
        quick=[{"N": 2}, {"share": 0.5}, {}, {"share": 2.0}],
        full=[
            {"N": N, "share": share, "requests": 1_000_000}
            for N in INSTANCES[1:]
            for share in (0.5, 0.8, 1.0, 1.2, 2.0)
        ],
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="waiting-published-gain",
        title="The factor N against round-robin with bounded passes",
        source="SBS, section 3.1, against the usual baseline and without A3",
        statement=r"Passes hold at most $c$ requests: round-robin waits at least $N$ times as long as spacing.",
        refuted_by="A load and capacity at which it waits less than N times as long.",
        measure=_gain,
        quick=[{}],
        full=[{"load": 4 * rho, "requests": 2_000_000} for rho in (0.5, 0.8, 0.9, 0.95)]
        + [{"load": 3.8, "requests": 1_000_000, "rule": rule} for rule in ("random", "jsq")],
        expected=Verdict.REFUTED,
        remark="At c = 4, rho = 0.95 and N = 10 the gain over round-robin is about 2.4, not 10, because round-robin "
        "evens out what comes to an instance. Over a random split it is N exactly (waiting-bounded-passes); over the "
        "pool without a timer 5 to 30 %.",
    ),
)
