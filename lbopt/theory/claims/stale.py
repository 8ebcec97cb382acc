"""What sight of some age costs: a floor of every rule, who reaches it, the herd, and power of two choices (lbopt)."""

from __future__ import annotations

import math
from typing import Any

from lbopt.instances import open_trace
from lbopt.instances.families import ALL_NAMES
from lbopt.theory.chains.batch_means import BATCH_SPANS, FEWEST_BATCHES, ChainMean, mean_finding, steps_mean
from lbopt.theory.chains.open_fleet import RULES, OpenFleet, Requests
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_fleet, require_geometric, require_prompts
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.stale import herd_imbalance, stale_floor
from lbopt.theory.laws.stale_choice import power_of_two
from lbopt.theory.verdict import Verdict

#: By how much the laws may be off: what levelling leaves, what noise adds to a herd, what a mean field leaves out.
LEVEL_TOLERANCE, HERD_TOLERANCE, CHOICE_TOLERANCE = 0.04, 0.03, 0.05

#: The tokens that a window brings to a worker are so many times the noise of a load in it: then a herd stands out.
STANDS_OUT = 3.0

#: Least E[S] sqrt(lambda p), tokens: below it the growth of loads by the numbers of their requests counts.
GROWTH = 20.0

#: Requests of a family that stand for its law.
_FAMILY = 20_000

_QUICK_FLEETS: tuple[dict[str, Any], ...] = ({}, {"G": 16, "period": 20}, {"period": 6, "arrivals": 40.0})


def require_open(claim: str, G: int, arrivals: float, period: int, batches: int) -> None:
    """Refuse an open fleet that the laws say nothing of.

    Parameters
    ----------
    claim
        Name of the claim.
    G
        Number of workers.
    arrivals
        Requests a worker and step.
    period
        Steps between reports.
    batches
        Number of batches of the mean.
    """
    require_fleet(claim, G, 1)
    require(claim, G <= 1024, "at most 1,024 workers, whose loads are kept", f"G is {G}")
    require(claim, 0.05 <= arrivals <= 1000, "0.05 to 1,000 arrivals a worker and step", f"arrivals is {arrivals}")
    require(claim, 1 <= period <= 10_000, "reports of every 1 to 10,000 steps", f"period is {period}")
    require(claim, batches >= FEWEST_BATCHES, f"at least {FEWEST_BATCHES} batches", f"batches is {batches}")


def requests_for(claim: str, p: float, s_max: int, family: str, seed: int) -> tuple[Requests, str]:
    """Return what arrives, and its words in the report: a seeded family, or geometric lives with uniform prompts.

    Parameters
    ----------
    claim
        Name of the claim.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    family
        Name of a family; empty for geometric lives.
    seed
        Of the draws.
    """
    if family:
        require(claim, family in ALL_NAMES, f"a family of requests: {', '.join(ALL_NAMES)}", f"family is {family}")
        trace = open_trace(family, count=_FAMILY, seed=seed)
        return Requests.observed(trace.prompt, trace.output), family
    require_geometric(claim, p)
    require(claim, p >= 1e-4, "lives of at most 10,000 steps on average, to be run", f"p is {p}")
    require_prompts(claim, s_max)
    law = PromptLaw.uniform(s_max)
    return Requests.geometric(p, law), f"p={p:g}, {law.name}"


def imbalance_of(fleet: OpenFleet, rule: str, batches: int, seed: int) -> ChainMean:
    """Return the mean imbalance of a rule, over batches of whole windows that are long against lives.

    Parameters
    ----------
    fleet
        The open fleet.
    rule
        A rule of `OpenFleet`.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    cycle = fleet.period * (fleet.G if rule == "blind" else 1)
    length = math.ceil(BATCH_SPANS * fleet.requests.lives.mean / cycle) * cycle
    return steps_mean(fleet.run(rule, batches * length, seed).imbalance, length)


def _within(
    mean: ChainMean, law: float, tolerance: float, *, regime: str, quantity: str, outside: str = ""
) -> list[Finding]:
    shown = f"{mean.mean / law:.4f} times the law"
    return [
        mean_finding(
            mean,
            relation,
            bound * law,
            regime=regime,
            quantity=f"{quantity}, against {bound:g} times the law",
            outside=outside,
            note=shown,
        )
        for relation, bound in ((">=", 1 - tolerance), ("<=", 1 + tolerance))
    ]


def measure_floor(
    *,
    G: int = 8,
    arrivals: float = 20.0,
    p: float = 0.1,
    s_max: int = 200,
    family: str = "",
    period: int = 10,
    rule: str = "counted",
    batches: int = 20,
    seed: int,
) -> list[Finding]:
    """Hold a rule's imbalance against the floor of its sight.

    Parameters
    ----------
    G
        Number of workers.
    arrivals
        Requests a worker and step.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    family
        A seeded family of requests in place of the two; empty for none.
    period
        Steps between reports.
    rule
        A rule of `OpenFleet`.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "stale-floor"
    require_open(claim, G, arrivals, period, batches)
    require(claim, rule in RULES, f"a rule of {', '.join(RULES)}", f"rule is {rule}")
    requests, words = requests_for(claim, p, s_max, family, seed)
    mean = imbalance_of(OpenFleet(G=G, arrivals=arrivals, requests=requests, period=period), rule, batches, seed)
    law = stale_floor(G, requests.lives, arrivals, period)
    return [
        mean_finding(
            mean,
            ">=",
            law,
            regime=f"G={G}, {arrivals:g} a step, {words}, T={period}, {rule}",
            quantity="mean imbalance (tokens), against the floor",
            outside="" if period > 1 else "reports of every step: the floor is zero",
            note=f"{mean.mean / law:.3f} times the floor" if law else "",
        )
    ]


def measure_level(
    *,
    G: int = 8,
    arrivals: float = 20.0,
    p: float = 0.1,
    s_max: int = 200,
    family: str = "",
    period: int = 20,
    batches: int = 20,
    seed: int,
) -> list[Finding]:
    """Run the rule that levels what it expects, and hold it against the floor from both sides.

    Parameters
    ----------
    G
        Number of workers.
    arrivals
        Requests a worker and step.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    family
        A seeded family of requests in place of the two; empty for none.
    period
        Steps between reports.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "stale-level"
    require_open(claim, G, arrivals, period, batches)
    require(claim, period >= 2, "reports that are not of every step", f"period is {period}")
    requests, words = requests_for(claim, p, s_max, family, seed)
    lives = requests.lives
    brought = arrivals * float(lives.moments[0, 0])
    doubt = math.sqrt(lives.unseen(arrivals, period).variance)
    steps = doubt / brought
    outside = ""
    if 10 * steps > period:
        outside = f"a report's news takes {steps:.2g} steps of arrivals to level, more than a tenth of T"
    mean = imbalance_of(OpenFleet(G=G, arrivals=arrivals, requests=requests, period=period), "levelled", batches, seed)
    law = stale_floor(G, lives, arrivals, period)
    return _within(
        mean,
        law,
        LEVEL_TOLERANCE,
        regime=f"G={G}, {arrivals:g} a step, {words}, T={period}",
        quantity="mean imbalance of levelling (tokens)",
        outside=outside,
    )


def measure_herd(
    *,
    G: int = 8,
    arrivals: float = 20.0,
    p: float = 0.1,
    s_max: int = 200,
    period: int = 10,
    batches: int = 20,
    seed: int,
) -> list[Finding]:
    """Send each window whole to the worker that the report shows least loaded.

    Parameters
    ----------
    G
        Number of workers.
    arrivals
        Requests a worker and step.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    period
        Steps between reports.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "stale-herd"
    require_open(claim, G, arrivals, period, batches)
    requests, words = requests_for(claim, p, s_max, "", seed)
    lives = requests.lives
    step = arrivals * period * float(lives.moments[0, 0])  # of the ladder
    noise = math.sqrt(2 * arrivals * period * float(lives.moments[1, 0]))
    outside = ""
    if step < STANDS_OUT * noise:
        outside = f"a step of the ladder is {step / noise:.2g} times the noise of a window, below {STANDS_OUT:g}"
    elif G * period * p > 8:
        outside = f"a worker's turn comes every {G * period * p:.2g} lives: most are empty by then"
    mean = imbalance_of(OpenFleet(G=G, arrivals=arrivals, requests=requests, period=period), "blind", batches, seed)
    return _within(
        mean,
        herd_imbalance(G, lives, arrivals, period),
        HERD_TOLERANCE,
        regime=f"G={G}, {arrivals:g} a step, {words}, T={period}",
        quantity="mean imbalance of the herd (tokens)",
        outside=outside,
    )


def measure_choice(
    *,
    G: int = 32,
    arrivals: float = 20.0,
    p: float = 0.1,
    s_max: int = 200,
    period: int = 4,
    batches: int = 20,
    seed: int,
) -> list[Finding]:
    """Send each arrival to the less loaded of two workers, by the last report.

    Parameters
    ----------
    G
        Number of workers.
    arrivals
        Requests a worker and step.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    period
        Steps between reports.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "stale-power-of-two"
    require_open(claim, G, arrivals, period, batches)
    requests, words = requests_for(claim, p, s_max, "", seed)
    law = PromptLaw.uniform(s_max)
    growth = float(law.mean) * math.sqrt(arrivals * p)
    outside = ""
    if growth < GROWTH:
        outside = f"E[S] sqrt(lambda p) = {growth:.3g} tokens is below {GROWTH:g}: numbers of requests count"
    elif G < 32:
        outside = f"a fleet of {G} workers is not large"
    fleet = OpenFleet(G=G, arrivals=arrivals, requests=requests, period=period)
    return _within(
        imbalance_of(fleet, "power-of-two", batches, seed),
        power_of_two(G, p, law, arrivals, period),
        CHOICE_TOLERANCE,
        regime=f"G={G}, {arrivals:g} a step, {words}, T={period}",
        quantity="mean imbalance of power of two (tokens)",
        outside=outside,
    )


_UNSEEN = (
    r"$V_d = \lambda\sum_a \bar F(a)\bigl(1-c_d(a)\bigr)\,E[(S+a)^2]$, $c_d(a)=\bar F(a)/\bar F((a-d)^+)$, the "
    r"chance that a request of age $a$ is still there"
)

CLAIMS = (
    Claim(
        name="stale-floor",
        title="No rule leaves less than the part of the loads that its sight is too old to show",
        source="lbopt",
        statement=r"With sight of age $d$ and " + _UNSEEN + r": $E[\mathrm{Imb}] \ge G\,\bigl[e_G\sqrt{V_d} + "
        r"\frac{K_d}{6V_d}(E[Z^2]-1)\bigr]$, averaged over $d = 0,\dots,T-1$, for every rule.",
        refuted_by="A rule whose mean imbalance is below it, outside its joint 99.99 % region.",
        measure=measure_floor,
        quick=({}, {"rule": "levelled"}, {"rule": "power-of-two"}, {"rule": "blind"}, {"rule": "random"}),
        full=(
            *({"rule": rule, "period": T, "batches": 30} for rule in RULES for T in (2, 10, 40)),
            *(
                {"family": "azure-like", "arrivals": 1.0, "period": 50, "rule": rule}
                for rule in ("counted", "levelled")
            ),
            *(
                {"family": "burstgpt-like", "arrivals": 1.0, "period": 50, "rule": rule}
                for rule in ("counted", "levelled")
            ),
        ),
        expected=Verdict.HOLDS,
        remark="By Jensen over the permutations of the workers; the normal form has an error of the order of one "
        "part in the number of requests that end unseen. A rule that knows outputs is none of these.",
    ),
    Claim(
        name="stale-level",
        title="A rule that levels what it expects leaves the floor and no more",
        source="lbopt",
        statement=r"Where a report's news is levelled within a tenth of $T$: $E[\mathrm{Imb}]$ of the rule that sends "
        r"to the least expected load is $G\,\bigl[e_G\sqrt{V_d} + \frac{K_d}{6V_d}(E[Z^2]-1)\bigr]$ within 4 %.",
        refuted_by="A mean imbalance outside 0.96 to 1.04 times the law, in its range.",
        measure=measure_level,
        quick=_QUICK_FLEETS,
        full=(
            *({"G": G, "period": T, "arrivals": 40.0, "batches": 30} for G in (2, 8, 32) for T in (10, 60)),
            {"p": 0.02, "s_max": 400, "arrivals": 40.0, "period": 50},
        ),
        expected=Verdict.HOLDS,
        remark="So the price of age is $e_G\\sqrt{V_d}$ a worker: it grows as $\\sqrt d$, and from a life on no more.",
    ),
    Claim(
        name="stale-herd",
        title="A router that counts nothing sends each window to one worker",
        source="lbopt; Mitzenmacher 2000",
        statement=r"Reports of every $T$ steps, each arrival to the least reported load, a window's tokens at least "
        r"three times its noise: loads are a ladder, $\lambda G\sum_{t} \bar F(t)E[S+t]$ over the windows of a worker, "
        r"and $E[\mathrm{Imb}]$ is its imbalance within 3 %; where $GT$ is short against lives, "
        r"$E[\mathrm{Imb}] = G(G-1)\,\lambda E[S]\,T/2$.",
        refuted_by="A mean imbalance outside 0.97 to 1.03 times the law, in its range.",
        measure=measure_herd,
        quick=({}, {"G": 4}, {"period": 2}),
        full=(
            *({"G": G, "period": T, "batches": 24} for G in (4, 8) for T in (5, 10)),
            {"G": 16, "period": 5},
            {"p": 0.02, "period": 5},
            {"arrivals": 2.0, "period": 2},
        ),
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="stale-power-of-two",
        title="Power of two choices by old reports, in a large fleet",
        source="lbopt; Mitzenmacher 2000; Pal and Pitman 2008",
        statement=r"A load at rank $u$ drifts by $(1-2u)\,\lambda E[S]$ a step until the next report; the fixed point "
        r"of that map gives $E[\mathrm{Imb}]$ within 5 % from $G = 32$ on. In the limit of small steps it is "
        r"$G\,H_{G-1}\,\frac{E[S^2]+E[X^2]}{2E[S]}$, $X$ the tokens of a request that ends.",
        refuted_by="A mean imbalance outside 0.95 to 1.05 times the law, in its range.",
        measure=measure_choice,
        quick=({}, {"period": 10}, {"G": 64}),
        full=(
            *({"G": G, "period": T, "batches": 24} for G in (32, 128) for T in (1, 4, 30)),
            {"p": 0.02, "s_max": 1000, "arrivals": 5.0, "period": 8},
        ),
        expected=Verdict.HOLDS,
    ),
)
