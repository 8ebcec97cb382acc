"""The published claim about waiting, where it holds and where not, and values of earlier simulations (SBS, section 3).

The published claim, T/2 against T/(2N), in its regime and in those where it does not hold (SBS, section 3).

Values of earlier simulations, found again: a table of waits (SBS, section 3.5), by another program.

Both sides are sampled, so a row is judged with the joint error: that of the runs here, the same for one run of the
length that the table states, and the rounding of the printed number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lbopt.theory.chains.batch_means import Average
from lbopt.theory.chains.waiting_runs import BOUND, INTERFACES, Floats, spread, steady
from lbopt.theory.claim import Claim, claim
from lbopt.theory.claims.waiting import GRID, INSTANCES, OPEN, Gates
from lbopt.theory.finding import Finding
from lbopt.theory.laws.waiting import back_to_back_wait, break_even_load, immediate_wait, tick_wait
from lbopt.theory.regime import Asked, Asks, at_least, between, measured_in, one_of, require


@measured_in("waiting-published", Gates, without=OPEN, load=8.0)
def _published(at: Gates, seed: int) -> list[Finding]:
    N, traffic, regime = at.N, at.traffic(seed), str(at)
    bound, tick = traffic.waits("random-back-to-back"), traffic.waits("tick")
    return [
        steady(bound).finding(regime, "mean wait, immediate, passes", back_to_back_wait(), note=spread(bound)),
        steady(tick).finding(regime, "mean wait, staggered, passes", tick_wait(N), note=spread(tick)),
        steady(bound - N * tick).finding(regime, "immediate less N times staggered, passes", 0.0),
    ]


@measured_in("waiting-published-any-load", Gates, without=OPEN, load=0.5)
def _any_load(at: Gates, seed: int) -> list[Finding]:
    traffic, regime = at.traffic(seed), str(at)
    bound, spaced = traffic.waits("random"), traffic.waits("spacing")
    return [
        steady(bound).finding(regime, "mean wait, immediate, passes", back_to_back_wait(), note=spread(bound)),
        steady(spaced).finding(regime, "mean wait, spacing, passes", tick_wait(at.N), note=spread(spaced)),
    ]


@measured_in("waiting-tick-never-worse", Gates, without=OPEN, load=0.05)
def _never_worse(at: Gates, seed: int) -> list[Finding]:
    traffic = at.traffic(seed)
    tick, bound = traffic.waits("tick"), traffic.waits("random")
    note = f"means: tick {tick.mean():.3g}, immediate {bound.mean():.3g}"
    return [steady(tick - bound).finding(str(at), "wait, tick less immediate, passes", 0.0, "<=", note=note)]


@dataclass(frozen=True, kw_only=True)
class LightGates(Gates):
    """A load near the one at which the tick and immediate passes break even.

    Parameters
    ----------
    share
        Load over the break-even load.
    """

    share: float = 1.0
    requests: int = 400_000
    asks: ClassVar[Asks] = {
        "N": at_least(2, "at least 2 instances: with one the tick is worse at every load"),
        "share": (Asked(lambda share: 0 < share <= 20, "a load of 0 to 20 times the break-even load"),),
    }


@measured_in("waiting-tick-light-load", LightGates, without=("load", *OPEN))
def _light_load(at: LightGates, seed: int) -> list[Finding]:
    share, there = at.share, replace(at, load=at.share * break_even_load(at.N))
    there.require("waiting-tick-light-load")
    traffic = there.traffic(seed)
    lost = steady(traffic.waits("tick") - traffic.waits("random"))
    regime = f"{there}, {share:g} of break-even"
    relation = "=" if share == 1 else ">=" if share < 1 else "<="
    return [
        lost.finding(regime, "wait, tick less immediate, passes", 0.0, relation),
        lost.finding(regime, "the same against the closed forms", tick_wait(at.N) - immediate_wait(there.load)),
    ]


@dataclass(frozen=True, kw_only=True)
class RuledGates(Gates):
    """Instances to which an immediate rule binds requests.

    Parameters
    ----------
    rule
        "random", "round-robin" or "jsq".
    """

    load: float = 3.8
    requests: int = 1_000_000
    capacity: int = 4
    rule: str = "round-robin"
    asks: ClassVar[Asks] = {"rule": one_of(tuple(BOUND), "an immediate rule out of")}


@measured_in("waiting-published-gain", RuledGates, without=("replications",))
def _gain(at: RuledGates, seed: int) -> list[Finding]:
    traffic, rule = at.traffic(seed), at.rule
    bound, spaced, pool = (traffic.waits(each, at.capacity) for each in (rule, "spacing", "pool"))
    bound_mean, spaced_mean, pool_mean = (steady(each).mean for each in (bound, spaced, pool))
    note = (
        f"means: {rule} {bound_mean:.3g}, spacing {spaced_mean:.3g}, pool {pool_mean:.3g}: "
        f"gain {bound_mean / spaced_mean:.3g}x over {rule}, {pool_mean / spaced_mean:.3g}x over the pool"
    )
    quantity = f"{rule} less N times spacing, passes"
    return [steady(bound - at.N * spaced).finding(str(at), quantity, 0.0, ">=", note=note)]


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


@dataclass(frozen=True, kw_only=True)
class PrintedGates(Gates):
    """An interface whose mean wait was printed.

    Parameters
    ----------
    interface
        One of `INTERFACES`.
    part
        One of `PARTS`.
    printed
        The mean wait, passes.
    digits
        Its digits after the point.
    """

    load: float = 0.5
    interface: str = "random"
    part: str = "steady"
    replications: int = 1
    printed: float = 0.2263
    digits: int = 4
    asks: ClassVar[Asks] = {
        "interface": one_of(INTERFACES, "an interface out of"),
        "part": one_of(PARTS, "a part of the run out of"),
        "digits": between(0, 9, "0 to 9 printed digits"),
        "printed": (Asked(lambda mean: 0 <= mean < 1e6, "a printed mean of 0 to 1000000 passes"),),
    }

    def require(self, claim: str) -> None:
        """Refuse parts of a single run."""
        super().require(claim)
        several = self.replications > 1 or self.part == "steady"
        require(claim, several, "several runs for the part named", f"part is {self.part}, one run")


@measured_in("waiting-reference-values", PrintedGates)
def _reference(at: PrintedGates, seed: int) -> list[Finding]:
    first, part = at.traffic(seed), at.part
    wait = first.waits(at.interface, at.capacity)
    if at.replications == 1:
        found = steady(wait)
        theirs = found.error
    else:
        runs = (at.traffic(seed, each).waits(at.interface, at.capacity) for each in range(at.replications))
        found = Average.of([float(_of(part, run).mean()) for run in runs], at.requests * at.replications)
        theirs = found.error * at.replications**0.5
    rounding = 10.0**-at.digits / 12**0.5
    joint = replace(found, error=float(np.hypot(np.hypot(found.error, theirs), rounding)))
    note = f"own error {found.error:.2g}; {spread(wait)}; {first.account(at.interface, at.capacity)}"
    return [joint.finding(f"{at.interface}, {at}", f"mean wait, {part}, passes", at.printed, note=note)]


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
