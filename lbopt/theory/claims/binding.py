"""What binding a request before it can start costs, and what a pool costs that sees free slots late (lbopt)."""

from __future__ import annotations

import numpy as np

from lbopt.theory.chains.batch_means import FEWEST_BATCHES, batch_steps, burn_in_steps, mean_finding, steps_mean
from lbopt.theory.chains.bound_fleet import RULES, BoundFleet
from lbopt.theory.chains.open_fleet import OpenFleet
from lbopt.theory.chains.pool_by_report import pool_by_report
from lbopt.theory.claim import Claim
from lbopt.theory.claims.stale import requests_for, require_open
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_fleet, require_geometric, require_prompts
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.stale_binding import bound_floor, random_waiting, seen_share
from lbopt.theory.verdict import Verdict

#: What a levelling rule with queues leaves above the floor at most, where the queue is deep.
ABOVE_FLOOR = 0.10

#: Least ends of a step and worker: with fewer, the sizes of a step level nothing.
ENDS = 10.0


def measure_bound(
    *,
    G: int = 8,
    B: int = 128,
    p: float = 0.1,
    s_max: int = 200,
    queue: int = 64,
    rule: str = "levelled",
    batches: int = 20,
    seed: int,
) -> list[Finding]:
    """Run a saturated fleet in which each worker has a queue of bound requests.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    queue
        Requests bound to each worker that have not started.
    rule
        A rule of `BoundFleet`.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "binding-floor"
    require_fleet(claim, G, B)
    require(claim, G * B <= 1 << 20, "at most 2^20 slots, which are run one by one", f"G B is {G * B}")
    require_geometric(claim, p)
    require_prompts(claim, s_max)
    require(claim, 1 <= queue <= 10_000, "a queue of 1 to 10,000 requests", f"queue is {queue}")
    require(claim, rule in RULES, f"a rule of {', '.join(RULES)}", f"rule is {rule}")
    require(claim, batches >= FEWEST_BATCHES, f"at least {FEWEST_BATCHES} batches", f"batches is {batches}")
    law = PromptLaw.uniform(s_max)
    fleet = BoundFleet(G=G, B=B, p=p, prompts=law, queue=queue)
    length = batch_steps(p)
    mean = steps_mean(fleet.imbalance(rule, batches * length, burn_in_steps(G, B, p), seed), length)
    floor = bound_floor(G, B, p, law, queue)
    outside = ""
    if p * B < ENDS:
        outside = f"{p * B:.2g} ends a step and worker are below {ENDS:g}: their sizes level little"
    elif queue < 1.95 * p * B:
        outside = "a wait below two steps: what one step's sizes leave unlevelled counts"
    wait = queue / (p * B)
    found = []
    for relation, bound in ((">=", 1.0), ("<=", 1 + ABOVE_FLOOR)):
        if relation == "<=" and (rule != "levelled" or abs(wait - round(wait)) > 0.02):
            continue
        found.append(
            mean_finding(
                mean,
                relation,
                bound * floor,
                regime=f"G={G}, p={p:g}, {law.name}, queue={queue}, {rule}",
                quantity=f"mean imbalance (tokens), against {bound:g} times the floor",
                outside=outside,
                note=f"{mean.mean / floor:.3f} times the floor; a request waits {wait:.3g} steps",
                B=B,
            )
        )
    return found


def measure_random(
    *, G: int = 8, B: int = 64, p: float = 0.1, load: float = 0.9, batches: int = 20, seed: int
) -> list[Finding]:
    """Bind each arrival to a worker by chance, and count who waits.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    load
        Arrivals as a share of what the slots serve.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "binding-random"
    require_geometric(claim, p)
    require(claim, 2 <= B <= 2000, "2 to 2,000 slots a worker", f"B is {B}")
    require(claim, 0.3 <= load <= 0.97, "a load from 0.3 to 0.97, which settles", f"load is {load}")
    arrivals = load * p * B
    require_open(claim, G, arrivals, 1, batches)
    fleet = OpenFleet(
        G=G, arrivals=arrivals, requests=requests_for(claim, p, 2, "", seed)[0], period=1, slots=B
    )  # prompts play no part
    length = 4 * batch_steps(p)
    mean = steps_mean(fleet.run("random", batches * length, seed).waiting, length)
    return [
        mean_finding(
            mean,
            "=",
            random_waiting(arrivals, p, B),
            regime=f"G={G}, B={B}, p={p:g}, load {load:g}",
            quantity="requests that wait at a worker, random split",
            note=f"in a pool of all slots {random_waiting(G * arrivals, p, G * B) / G:.2g} a worker",
            B=B,
        )
    ]


def measure_seen(
    *, B: int = 512, p: float = 0.1, period: int = 10, family: str = "", batches: int = 20, seed: int
) -> list[Finding]:
    """Fill slots at reports alone, from a pool that never ends.

    Parameters
    ----------
    B
        Slots that are looked at.
    p
        Probability that a request ends in a step.
    period
        Steps between reports.
    family
        A seeded family of requests in place of geometric lives; empty for none.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "stale-pool"
    require_open(claim, 2, 1.0, period, batches)
    require(claim, 1 <= B <= 1 << 20, "1 to 2^20 slots", f"B is {B}")
    requests, words = requests_for(claim, p, 2, family, seed)
    lives = requests.lives
    length = -(-int(20 * lives.mean) // period) * period
    skipped = -(-lives.alive.size // period) * period
    busy = pool_by_report(requests, B, period, skipped + batches * length, seed)[skipped:]
    return [
        mean_finding(
            steps_mean(busy.astype(np.float64), length),
            "=",
            seen_share(lives, period),
            regime=f"{words if family else f'p={p:g}'}, T={period}",
            quantity="share of slots that are busy",
            B=B,
        )
    ]


CLAIMS = (
    Claim(
        name="binding-floor",
        title="A request that is bound W steps early is placed by sight that is W steps old",
        source="lbopt",
        statement=r"All slots busy, $Q$ requests bound to a worker, $W = \lfloor Q/(pB) \rfloor$, $r = (1-p)^W$: no "
        r"rule leaves less than $G\,e_G\sqrt{V}$ with $V = B\bigl[\frac{1-p}{p^2}(1-r^2) + \sigma_s^2 r(1-r)\bigr] + "
        r"\sigma_s^2\sum_{i\le Q} \pi_i(1-\pi_i)$, $\pi_i$ the chance that place $i$ of the queue runs after $W$; "
        r"levelling what is expected leaves at most a tenth more where $Q/(pB)$ is whole, $W \ge 2$ and $pB \ge 10$.",
        refuted_by="A mean imbalance below the law, or of the levelling rule above 1.1 times it.",
        measure=measure_bound,
        quick=({}, {"queue": 128}, {"rule": "present"}),
        full=(
            *({"queue": Q, "batches": 30} for Q in (64, 128, 192)),
            *({"queue": Q, "B": 512, "s_max": 20} for Q in (128, 256)),
            {"queue": 256, "G": 16, "B": 256},
            *({"queue": Q, "rule": "present"} for Q in (32, 128)),
        ),
        expected=Verdict.HOLDS,
        remark="The floor takes the wait for certain. It varies by a share of 1/sqrt(Q), and what starts before its "
        "time was bound later than assumed; this is of the order of the error of the normal form.",
    ),
    Claim(
        name="binding-random",
        title="Bound by chance, each worker is a queue of its own",
        source="lbopt; Erlang 1917",
        statement=r"Each arrival is bound at once to a worker drawn by chance: the number that waits at a worker is "
        r"$E[(X-B)^+]$, $X$ with the stationary law of $X' = X - \mathrm{Bin}(\min(X,B), p) + "
        r"\mathrm{Poisson}(\lambda)$; in a pool the same with $GB$ and $G\lambda$.",
        refuted_by="A mean number outside its joint 99.99 % region.",
        measure=measure_random,
        quick=({}, {"B": 16, "load": 0.8}),
        full=(
            *({"G": 32, "B": 8, "load": load, "batches": 100} for load in (0.7, 0.8)),
            *({"load": load, "batches": 40} for load in (0.8, 0.9)),
        ),
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="stale-pool",
        title="A pool fills a slot when it sees it free",
        source="lbopt; Smith 1958",
        statement=r"Reports of every $T$ steps, a pool that never ends: a slot is busy the share "
        r"$E[A]\,/\,E[T\lceil A/T\rceil]$ of its time; for geometric lives $\frac{1-(1-p)^T}{pT}$.",
        refuted_by="A mean share outside its joint 99.99 % region.",
        measure=measure_seen,
        quick=({}, {"p": 0.02, "period": 5}),
        full=(
            *({"p": p, "period": T, "batches": 100} for p in (0.02, 0.1, 0.5) for T in (2, 10, 50)),
            *({"family": name, "period": 100} for name in ("azure-like", "burstgpt-like")),
        ),
        expected=Verdict.HOLDS,
    ),
)
