"""Theorem 2 on arrival instances of the overloaded family: what FCFS does not depend on, and what BF-IO leaves."""

from __future__ import annotations

import math

import numpy as np

from lbopt.theory.chains.batch_means import FEWEST_BATCHES, batch_steps, mean_finding, steps_mean
from lbopt.theory.chains.pooled_chain import ARRIVALS, PooledRun, Rule, best_placement, first_come, run_pooled
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_fleet, require_geometric, require_prompts
from lbopt.theory.laws.fcfs_imbalance import improvement_floor
from lbopt.theory.laws.growth import LLM
from lbopt.theory.laws.load_law import load_law
from lbopt.theory.laws.onset import outside_onset
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.slot_law import slot_law
from lbopt.theory.laws.spacing import least_left
from lbopt.theory.verdict import Verdict

#: Steps go one by one through Python; larger fleets take hours.
_MOST_SLOTS = 100_000


def measure_any_arrivals(
    *, G: int = 4, B: int = 64, p: float = 0.5, s_max: int = 8, arrivals: str = "minimal", batches: int = 40, seed: int
) -> list[Finding]:
    """Run FCFS on an instance of the overloaded family, and compare with the computed law.

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
    arrivals
        How requests arrive.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    run, law, length = _run("fcfs-any-arrivals", first_come, G, B, p, s_max, arrivals, batches, seed)
    mean = steps_mean(run.imbalance, length)
    return [
        mean_finding(
            mean,
            "=",
            load_law(slot_law(law, p), B).expected_imbalance(G),
            regime=f"G={G}, B={B}, p={p:g}, {law.name}, {arrivals} arrivals",
            quantity="mean imbalance of FCFS (tokens)",
        )
    ]


def measure_pools(
    *,
    G: int = 4,
    B: int = 384,
    p: float = 0.5,
    s_max: int = 4,
    sizes: str = "",
    arrivals: str = "minimal",
    batches: int = 20,
    seed: int,
) -> list[Finding]:
    """Run BF-IO on an instance of the overloaded family, every step at a proved optimum.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens; all sizes up to it arrive.
    sizes
        The sizes that arrive instead, such as 1+4+7, each as often; empty: those up to s_max.
    arrivals
        How requests arrive.
    batches
        Number of batches of the mean.
    seed
        Seed of the samples.
    """
    claim = "theorem-2-pools"
    law = sizes_law(claim, sizes) if sizes else None
    run, law, length = _run(claim, best_placement, G, B, p, s_max, arrivals, batches, seed, law)
    mean = steps_mean(run.imbalance, length)
    slot = slot_law(law, p)
    exact = load_law(slot, B).expected_imbalance(G)
    floor = improvement_floor(G, B, math.sqrt(slot.variance), law.largest)
    regime, outside = f"G={G}, B={B}, p={p:g}, {law.name}, {arrivals} arrivals", outside_onset(G, B, p, law)
    rows = [
        mean_finding(
            mean,
            "<=",
            1 / floor,
            unit=exact,
            regime=regime,
            quantity="share of FCFS's imbalance left by BF-IO",
            undecided=run.undecided,
            outside=outside,
            note=f"mean imbalance {mean.mean:.4g}; mean admitted prompt {run.admitted_prompt:.2f} of "
            f"{float(law.mean):g} that arrive; longest wait {run.longest_wait} steps",
        )
    ]
    d = math.gcd(*(size - law.lengths[0] for size in law.lengths))
    if d > 1:
        left = least_left(G, B, p, d, LLM)
        rows.append(
            mean_finding(
                mean,
                "=",
                left.mean,
                regime=regime,
                quantity="mean imbalance of BF-IO against the law of the spacing (tokens)",
                undecided=run.undecided,
                outside=outside,
                note=f"the greatest common divisor of the differences of sizes is {d}",
            )
        )
    return rows


def sizes_law(claim: str, sizes: str) -> PromptLaw:
    """Return the law of sizes that are written ``1+4+7``, each as often.

    Of two sizes Definition 1 asks for U(k) copies each: the one that is chosen less often waits in ever larger numbers.
    """
    parts = sizes.split("+")
    require(claim, all(part.isdecimal() for part in parts), "sizes such as 1+4+7, in tokens", f"sizes is '{sizes}'")
    found = tuple(sorted({int(part) for part in parts}))
    require(claim, len(found) >= 3, "at least three sizes, or the pool grows without end", f"sizes is '{sizes}'")
    require_prompts(claim, found[-1])
    return PromptLaw(found, (1,) * len(found), f"s in {{{','.join(map(str, found))}}}")


def _run(
    claim: str,
    rule: Rule,
    G: int,
    B: int,
    p: float,
    s_max: int,
    arrivals: str,
    batches: int,
    seed: int,
    law: PromptLaw | None = None,
) -> tuple[PooledRun, PromptLaw, int]:
    require_fleet(claim, G, B)
    require_geometric(claim, p)
    require_prompts(claim, s_max)
    require(claim, arrivals in ARRIVALS, f"arrivals that are {' or '.join(ARRIVALS)}", f"arrivals is '{arrivals}'")
    require(claim, batches >= FEWEST_BATCHES, f"at least {FEWEST_BATCHES} batches", f"batches is {batches}")
    require(claim, G * B <= _MOST_SLOTS, f"at most {_MOST_SLOTS:,} slots in all", f"G B is {G * B:,}")
    law = law or PromptLaw.uniform(s_max)
    length = batch_steps(p)
    run = run_pooled(rule, G, B, p, law, batches * length, arrivals, int(np.uint32(seed)))
    return run, law, length


CLAIMS = (
    Claim(
        name="fcfs-any-arrivals",
        title="FCFS does not depend on the arrivals",
        source="BF-IO, step 2.D, equation (29)",
        statement=r"On every overloaded arrival instance the long-run imbalance of FCFS is the same, that of "
        r"independent stationary slots.",
        refuted_by="A sampled mean outside the joint region around the computed one, for any arrivals.",
        measure=measure_any_arrivals,
        quick=[{"arrivals": arrivals} for arrivals in ARRIVALS],
        full=[
            {"G": G, "B": B, "p": p, "arrivals": arrivals, "batches": 200}
            for G, B, p in ((4, 64, 0.5), (2, 256, 0.2), (16, 32, 0.2))
            for arrivals in ARRIVALS
        ],
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="theorem-2-pools",
        title="BF-IO against FCFS with pools that lack sizes",
        source="BF-IO, Theorem 2 and definition 1",
        statement=r"On overloaded arrival instances, where for all $k$ $|R_{wait}(k)| - \max_s|R_s(k)| \ge U(k)$, and "
        r"for $B \ge 4B^*$: $\mathrm{IIR} \ge \frac{G}{G-1}\,\frac{\sigma_{snap}}{s_{\max}}\,e_G\sqrt B\,(1-o(1))$.",
        refuted_by="A larger share of FCFS's imbalance left than the inverse of the floor, from B = 4 B* on.",
        measure=measure_pools,
        quick=({}, {"sizes": "1+4+7", "batches": 40}, {"B": 16, "p": 0.2}),
        full=(
            *({"arrivals": arrivals, "batches": 25} for arrivals in ARRIVALS),
            {"G": 8, "B": 288, "s_max": 8},
            {"G": 8, "B": 288, "s_max": 8, "arrivals": "bursty"},
            *({"sizes": "1+4+7", "arrivals": arrivals, "batches": 200} for arrivals in ARRIVALS),
            {"sizes": "1+7+11", "batches": 100},
            {"B": 16, "p": 0.2},
        ),
        expected=Verdict.HOLDS,
        remark="Under Definition 1 and with leximax among optima the proof is that of theorem-2, with "
        "lemma-2-definition-1 for lemma-2. Every step is solved to proved optimality. Both sides do equal work: over "
        "the run BF-IO admits the prompts that arrive. Where all sizes arrive nothing at all was left above the onset; "
        "where their differences have a common divisor, what the law of the spacing says.",
    ),
)
