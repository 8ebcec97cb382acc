"""Values of earlier simulations, found again: a table of waits (SBS, section 3.5), by another program.

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
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require
from lbopt.theory.verdict import Verdict

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

CLAIMS: tuple[Claim, ...] = (
    Claim(
        name="waiting-reference-values",
        title="The table of simulated waits, found again",
        source="lbopt, an earlier simulation; SBS, section 3.5",
        statement=r"The means that an independent simulation printed, for immediate, pooled, tick and spaced dispatch, "
        r"with and without capacity, and for M/D/1 and M/D/10.",
        refuted_by="A mean outside the joint 99.99 % region of both simulations.",
        measure=_reference,
        quick=[*_UNLIMITED, *_FROZEN],
        full=[*_UNLIMITED, *_FROZEN, *_POOL, *_BOUNDED],
        expected=Verdict.HOLDS,
    ),
)
