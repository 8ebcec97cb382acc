"""The law of the regime below the onset, in which practice lives and the theorems say nothing (lbopt)."""

from __future__ import annotations

from lbopt.theory.chains.batch_means import (
    FEWEST_BATCHES,
    batch_steps,
    burn_in_steps,
    mean_finding,
    steps_mean,
)
from lbopt.theory.chains.replete import run_replete
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_fleet, require_geometric, require_prompts
from lbopt.theory.laws.leader_drift import levelled_imbalance, levelled_range, natural_slots
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.verdict import Verdict

#: The law is held to account from so many times its lower end on, and up to its upper end over so much.
ABOVE, BELOW = 5.0, 10.0

#: Least b: with fewer natural slots, single ends move a load by as much as the gaps are wide.
NATURAL = 5.0

#: By how much it may be off there; both ends are limits, and nearer to the middle it is better.
TOLERANCE = 0.15


def measure_leader_drift(
    *, G: int = 2, B: int = 128, p: float = 0.002, s_max: int = 300, batches: int = 40, seed: int
) -> list[Finding]:
    """Run BF-IO exactly on a replete pool of all sizes.

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
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "leader-drift"
    require_fleet(claim, G, B)
    require_geometric(claim, p)
    require_prompts(claim, s_max)
    require(claim, batches >= FEWEST_BATCHES, f"at least {FEWEST_BATCHES} batches", f"batches is {batches}")
    law = PromptLaw.uniform(s_max)
    length = batch_steps(p)
    run = run_replete(G, B, p, law, batches * length, burn_in_steps(G, B, p), seed)
    mean = steps_mean(run.imbalance, length)
    predicted = levelled_imbalance(G, p, s_max)
    low, high = levelled_range(G, p, s_max)
    outside = ""
    if natural_slots(p, s_max) < NATURAL:
        outside = f"b = {natural_slots(p, s_max):.2g} is below {NATURAL:g}: outputs are not long against prompts"
    elif ABOVE * low > B:
        outside = f"B = {B} is below {ABOVE:g} times {low:.0f}: loads forget themselves before they drift"
    elif high / BELOW < B:
        outside = f"B = {B} is above {high:.0f} / {BELOW:g}: a step's admissions mend a gap at once"
    shown = f"{mean.mean / predicted:.3f} times the law"

    def finding(relation: str, bound: float) -> Finding:
        return mean_finding(
            mean,
            relation,
            bound * predicted,
            regime=f"G={G}, B={B}, p={p:g}, {law.name}",
            quantity=f"mean imbalance of BF-IO (tokens), against {bound:g} times the law",
            outside=outside,
            note=shown,
        )

    return [finding(">=", 1 - TOLERANCE), finding("<=", 1 + TOLERANCE)]


CLAIMS = (
    Claim(
        name="leader-drift",
        title="Below the onset, what the exact rule leaves does not depend on B",
        source="lbopt",
        statement=r"For a replete pool of all sizes, $b = \frac{2-p}{p^2(s_{\max}-1)^2} \ge 5$ and "
        r"$5\,G^2 b \le B \le \frac{b}{10p}$: $E[\mathrm{Imb}_{BF\text{-}IO}] = "
        r"G(G-1)\,\frac{2-p}{2p^2(s_{\max}-1)}$ within 15 %.",
        refuted_by="A mean imbalance outside 0.85 to 1.15 times the law, in its range.",
        measure=measure_leader_drift,
        quick=({}, {"B": 256}, {"s_max": 100, "B": 1024}, {"B": 8}, {"B": 2048}),
        full=(
            *({"B": B, "batches": 100} for B in (112, 128, 256, 279)),
            *({"s_max": 100, "B": B, "batches": 60} for B in (1024, 2500)),
            *({"p": 0.001, "s_max": 450, "B": B} for B in (200, 500, 990)),
            *({"G": 4, "p": 0.001, "s_max": 450, "B": B} for B in (800, 990)),
            {"G": 3, "p": 0.001, "s_max": 450, "B": 600},
            {"p": 0.01, "s_max": 30, "B": 238},
            {"B": 8},
            {"B": 2048},
            {"G": 8, "B": 64},
            {"G": 8, "B": 600, "p": 0.001, "s_max": 800},
            {"G": 8, "B": 72, "p": 0.0175, "s_max": 100},
        ),
        expected=Verdict.HOLDS,
        remark="The exact rule steers the leading worker alone, so loads make an Atlas model. FCFS's imbalance grows "
        "as the square root of B, so the improvement does too, far below the onset.",
    ),
)
