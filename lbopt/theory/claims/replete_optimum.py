"""The closed form of an optimal step with a replete pool, against the exact search and against listed optima."""

from __future__ import annotations

import numpy as np

from lbopt.model import StepProblem
from lbopt.solvers import solve
from lbopt.theory.chains.replete import PEAKS, POOLS, level, require_pool
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_fleet, require_prompts
from lbopt.theory.verdict import Verdict

#: Requests of a problem, beyond which the search may take longer than a check may.
_MOST_REQUESTS = 20_000


def measure(
    *,
    G: int = 8,
    c_max: int = 10,
    s_max: int = 6,
    pool: str = "two",
    spread: int = 60,
    steps: int = 50,
    time_limit: float = 5.0,
    seed: int,
) -> list[Finding]:
    """Solve random replete steps by the exact search too; both kinds of optimum must cost what it proves.

    Parameters
    ----------
    G
        Number of workers.
    c_max
        Most free slots of a worker.
    s_max
        Largest prompt, tokens.
    pool
        "all": the pool holds every size up to s_max; "two": 1 and s_max alone.
    spread
        Largest difference of loads before admission, tokens.
    steps
        Number of steps.
    time_limit
        Seconds for each step.
    seed
        Seed of the samples.
    """
    claim = "replete-optimum"
    require_fleet(claim, G, 1)
    require_prompts(claim, s_max)
    require_pool(claim, pool)
    require(claim, c_max >= 1, "a free slot somewhere", f"c_max is {c_max}")
    require(claim, spread >= 0, "loads that differ by 0 tokens or more", f"spread is {spread}")
    require(claim, steps >= 1, "at least one step to look at", f"steps is {steps}")
    require(claim, time_limit > 0, "a time limit above 0 s", f"time_limit is {time_limit}")
    law = POOLS[pool](s_max)
    most = G * c_max * len(law.lengths)
    require(claim, most <= _MOST_REQUESTS, f"steps of at most {_MOST_REQUESTS:,} requests here", f"there are {most:,}")
    rng = np.random.default_rng(np.random.SeedSequence([seed, 50, G, c_max, s_max, spread]))
    drawn = [(rng.integers(0, spread + 1, G), rng.integers(0, c_max + 1, G)) for _ in range(steps)]
    answers = [solve(_problem(before, free, law.lengths), "search", time_limit) for before, free in drawn]
    rows = []
    for peak in PEAKS:
        costs = [level(before, free, law, peak=peak) for before, free in drawn]
        misses = [
            abs(cost - int(answer.objective or 0)) + abs(cost - (G * int(loads.max()) - int(loads.sum())))
            for (cost, loads), answer in zip(costs, answers, strict=True)
            if answer.status == "optimal"
        ]
        rows.append(
            Finding(
                regime=f"G={G}, c<={c_max}, {law.name}, loads<={spread}, {peak} peak",
                quantity="imbalance of the closed form against `lbopt solve`, largest difference (tokens)",
                kind="exact",
                relation="=",
                measured=max(misses, default=0),
                predicted=0,
                trials=len(misses),
                violations=sum(miss > 0 for miss in misses),
                undecided=steps - len(misses),
            )
        )
    return rows


def _problem(before: object, free: np.ndarray[tuple[int], np.dtype[np.int64]], sizes: tuple[int, ...]) -> StepProblem:
    return StepProblem.now(before, free, np.repeat(sizes, int(free.sum())))


CLAIMS = (
    Claim(
        name="replete-optimum",
        title="An optimal step with a replete pool, in closed form",
        source="lbopt",
        statement=r"With sizes $v,v+d,\dots,v+md$ in the pool, $f_g=L^{pre}_g+vc_g$ and $M_0=\max_gf_g$, an "
        r"optimum of (IO) at $H=0$ is $L_g=f_g+d\min(mc_g,\lfloor(M-f_g)/d\rfloor)$ for one of $M=M_0,\dots,M_0+d-1$; "
        r"with all sizes $1..s_{\max}$ it is $L_g=\min(M_0,L^{pre}_g+s_{\max}c_g)$.",
        refuted_by="One step that the exact search solves for less.",
        measure=measure,
        quick=({}, {"pool": "all", "G": 16, "spread": 150}),
        full=(
            {"steps": 500},
            {"steps": 500, "pool": "all", "G": 16, "spread": 150},
            {"steps": 200, "c_max": 30, "s_max": 8, "spread": 200},
            {"steps": 200, "G": 32, "c_max": 8, "s_max": 9, "spread": 80},
            {"steps": 500, "G": 4, "c_max": 5, "s_max": 5, "spread": 30},
        ),
        expected=Verdict.HOLDS,
        remark=r"A peak higher by $d$ lifts no load by more than $d$, so $d$ peaks suffice; one pass over them finds "
        r"the best in $O(G+d)$. This is what makes chains at fleet size exact.",
    ),
)
