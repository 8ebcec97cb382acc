"""The law of the regime below the onset, in which practice lives and the theorems say nothing (lbopt)."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.theory.chains.batch_means import batch_steps, burn_in_steps, mean_finding, steps_mean
from lbopt.theory.chains.replete import run_replete
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.leader_drift import levelled_imbalance, levelled_range, natural_slots
from lbopt.theory.laws.leader_walk import MOST_ENDS, MOST_NATURAL, lead_law
from lbopt.theory.regime import BatchedFleet, measured_in
from lbopt.theory.verdict import Verdict

#: The leading term is held to account from so many times its lower end on, and up to its upper end over so much.
ABOVE, BELOW = 5.0, 10.0

#: Least b of two workers: with fewer natural slots, single ends move a load by as much as the gaps are wide.
NATURAL = 5.0

#: Least and most b of three and more: at 5.6 the leading term is short by a sixth with four and by a fifth with six.
FEWEST, MOST = 9.5, 50.0

#: Between them, what is measured lies between these times the leading term: it falls as b grows.
LOW, HIGH = 0.90, 1.15

#: The law of two workers has no limits at both ends. Its prompts are independent of the lead, which costs up to this
#: share where slots remember for many steps.
WALK_TOLERANCE, WALK_MOST_P = 0.02, 0.02


@dataclass(frozen=True, kw_only=True)
class DriftFleet(BatchedFleet):
    """A fleet below the onset, with a replete pool of all sizes."""

    G: int = 2
    B: int = 128
    p: float = 0.002
    s_max: int = 300
    pool: str = "all"
    batches: int = 40


@measured_in("leader-drift", DriftFleet, without=("pool", "peak"))
def measure_leader_drift(at: DriftFleet, seed: int) -> list[Finding]:
    """Run BF-IO exactly on a replete pool of all sizes."""
    G, B, p, s_max = at.G, at.B, at.p, at.s_max
    length = batch_steps(p)
    run = run_replete(G, B, p, at.law, at.batches * length, burn_in_steps(G, B, p), seed)
    mean = steps_mean(run.imbalance, length)
    leading = levelled_imbalance(G, p, s_max)
    law, sides, name = leading, ((">=", LOW), ("<=", HIGH)), "the leading term"
    if G == 2:
        sides, name = ((">=", 1 - WALK_TOLERANCE), ("<=", 1 + WALK_TOLERANCE)), "the law of the lead"
        if not (outside := _outside_walk(B, p, s_max)):
            law = lead_law(B, p, s_max).mean
    else:
        outside = _outside(G, B, p, s_max)
    return [
        mean_finding(
            mean,
            relation,
            share * law,
            quantity=f"mean imbalance of BF-IO (tokens), against {share:g} times {name}",
            regime=f"{at}, {at.law.name}",
            outside=outside,
            note=f"{mean.mean / leading:.3f} times the leading term",
        )
        for relation, share in sides
    ]


def _outside_walk(B: int, p: float, s_max: int) -> str:
    """Return why two workers are outside the range of the law of the lead; empty where they are inside."""
    _, high = levelled_range(2, p, s_max)
    if p > WALK_MOST_P:
        return f"p = {p:g} is above {WALK_MOST_P:g}: slots remember for too few steps"
    if natural_slots(p, s_max) < NATURAL:
        return f"b = {natural_slots(p, s_max):.2g} is below {NATURAL:g}: outputs are not long against prompts"
    if natural_slots(p, s_max) > MOST_NATURAL or p * B > MOST_ENDS:
        return f"b = {natural_slots(p, s_max):.3g} is above {MOST_NATURAL:g} or p B above {MOST_ENDS:g}: not computed"
    return f"B = {B} is above {high:.0f}: a step's admissions mend a gap at once" if high < B else ""


def _outside(G: int, B: int, p: float, s_max: int) -> str:
    """Return why a fleet is outside the range of the leading term; empty where it is inside."""
    low, high = levelled_range(G, p, s_max)
    if not FEWEST <= natural_slots(p, s_max) <= MOST:
        return f"b = {natural_slots(p, s_max):.2g} is not {FEWEST:g} to {MOST:g}, where the leading term is that near"
    if ABOVE * low > B:
        return f"B = {B} is below {ABOVE:g} times {low:.0f}: loads forget themselves before they drift"
    return (
        f"B = {B} is above {high:.0f} / {BELOW:g}: a step's admissions mend a gap at once" if high / BELOW < B else ""
    )


#: Three workers in the middle of the range.
_THREE = {"G": 3, "p": 0.0015, "s_max": 300, "B": 500}

CLAIMS = (
    Claim(
        name="leader-drift",
        title="Below the onset, what the exact rule leaves does not depend on B",
        source="lbopt",
        statement=r"For a replete pool of all sizes and $b = \frac{2-p}{p^2(s_{\max}-1)^2}$ from 9.5 to 50: with "
        r"$5\,G^2 b \le B \le \frac{b}{10p}$, $E[\mathrm{Imb}_{BF\text{-}IO}]$ is 0.9 to 1.15 times "
        r"$G(G-1)\,\frac{2-p}{2p^2(s_{\max}-1)}$; for two workers, $p\le\frac1{50}$ and every "
        r"$B\le\frac{\min(b,10)}p$ with $5\le b\le200$, the mean of the stationary lead with its finite steps "
        r"(laws.leader_walk) within 2 %.",
        refuted_by="A mean imbalance outside 0.98 to 1.02 times the law of the lead, or, with three and more workers, "
        "outside 0.9 to 1.15 times the leading term.",
        measure=measure_leader_drift,
        quick=(
            {},
            {"B": 256},
            {"s_max": 100, "B": 1024},
            {"B": 8},
            {"B": 2048},
            {"p": 0.01, "s_max": 30, "B": 238},
            {**_THREE, "batches": 80},
        ),
        full=(
            {**_THREE, "batches": 200},
            {"G": 3, "s_max": 102, "B": 2400, "batches": 60},
            {"G": 6, "p": 0.0005, "s_max": 895, "B": 1900, "batches": 20},
            *({"B": B, "batches": 100} for B in (8, 32, 128, 279)),
            *({"B": B} for B in (1024, 2048)),
            *({"s_max": 100, "B": B, "batches": batches} for B, batches in ((1024, 60), (2500, 20))),
            *({"p": 0.001, "s_max": 450, "B": B, "batches": batches} for B, batches in ((500, 60), (990, 20))),
            {"p": 0.01, "s_max": 30, "B": 238, "batches": 1_000},
            {"G": 4, "p": 0.001, "s_max": 450, "B": 800, "batches": 20},
            {"G": 3, "p": 0.001, "s_max": 450, "B": 600, "batches": 20},
            {"G": 8, "B": 64},
            {"G": 8, "B": 72, "p": 0.0175, "s_max": 100},
        ),
        expected=Verdict.HOLDS,
        remark="The exact rule steers the leading worker alone, so loads make an Atlas model. FCFS's imbalance grows "
        "as the square root of B, so the improvement does too, far below the onset. The leading term leaves out steps "
        "as long as the gaps, loads that forget, and admissions that mend a gap at once; for two workers the walk of "
        "the lead has all three, with nothing fitted.",
    ),
)
