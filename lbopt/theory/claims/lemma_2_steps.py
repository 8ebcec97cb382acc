"""Lemma 2 of BF-IO, corrected, on the steps of long chains at fleet size; and the event E_k that it speaks of.

Every step is an exact optimum (`lbopt.theory.chains.replete`). Given the past, the free slots of a step are G
independent draws of Bin(B, p), whatever happened before; so the events E_k of different steps are independent, and how
often they fail is binomial.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lbopt.theory.chains.replete import COMPOSITIONS, PEAKS, POOLS, RepleteRun, progression, require_pool, run_replete
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_fleet, require_geometric, require_prompts
from lbopt.theory.laws.gap_bounds import deviation, irregular
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.verdict import Verdict

IntArray = NDArray[np.int64]


def measure_steps(
    *,
    G: int = 8,
    B: int = 256,
    p: float = 0.5,
    s_max: int = 4,
    pool: str = "two",
    peak: str = "lowest",
    composition: str = "even",
    steps: int = 1_000,
    seed: int,
) -> list[Finding]:
    """Hold the gap of every step against both forms of the corrected lemma.

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
    pool
        "all": the pool holds every size up to s_max; "two": 1 and s_max alone.
    peak
        "lowest" of the optimal loads, or "raised": all loads higher while that costs nothing.
    composition
        "even" or "extreme", as in `run_replete`.
    steps
        Number of steps.
    seed
        Seed of the samples.
    """
    claim = "lemma-2-steps"
    _require_chain(claim, G, B, p, s_max, pool, steps)
    require(claim, peak in PEAKS, f"one of the peaks {', '.join(PEAKS)}", f"peak is '{peak}'")
    require(
        claim,
        composition in COMPOSITIONS,
        f"one of the compositions {', '.join(COMPOSITIONS)}",
        f"composition is '{composition}'",
    )
    law = POOLS[pool](s_max)
    run = run_replete(G, B, p, law, steps, None, seed, composition=composition, peak=peak)
    regime = f"G={G}, B={B}, p={p:g}, {law.name}, {peak} peak, {composition}"
    return [
        held_against(regime, "the bound", run, corrected_bounds(run, law)),
        held_against(regime, "the sharper bound", run, sharp_bounds(run, law)),
    ]


def corrected_bounds(run: RepleteRun, law: PromptLaw) -> IntArray:
    """Return (s - 2) + (D_pre - [s min c - (s - 1) max c])^+ of each step, tokens."""
    s = law.largest
    return np.asarray(s - 2 + np.maximum(0, run.gap_pre - (s * run.fewest - (s - 1) * run.most)))


def sharp_bounds(run: RepleteRun, law: PromptLaw) -> IntArray:
    """Return max{d - 1, (d - 1) + D_pre - [s min c - (s - d) max c]} of each step, for sizes in steps of d."""
    _, d, _ = progression(law)
    s = law.largest
    return np.asarray(d - 1 + np.maximum(0, run.gap_pre - (s * run.fewest - (s - d) * run.most)))


def held_against(regime: str, name: str, run: RepleteRun, bound: IntArray) -> Finding:
    """Return the row of the gaps of a run over a bound.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    name
        Name of the bound.
    run
        Run of the chain.
    bound
        int64, (steps,): bound in each step, tokens.
    """
    excess = run.gap - bound
    return Finding(
        regime=regime,
        quantity=f"gap after admission over {name} (tokens)",
        kind="exact",
        relation="<=",
        measured=int(excess.max()),
        predicted=0,
        trials=excess.size,
        violations=int((excess > 0).sum()),
        note=f"{int((excess == 0).sum())} steps meet it with equality; mean gap {run.gap.mean():.4g}, largest "
        f"{int(run.gap.max())}, mean size admitted {run.mean_admitted:.3g}",
    )


def measure_regular(
    *, G: int = 8, B: int = 4096, p: float = 0.5, s_max: int = 4, eta: float = 0.5, steps: int = 500, seed: int
) -> list[Finding]:
    """Count the steps outside E_k, and compute how probable they are.

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
    eta
        In (0, 1): a regular step takes at least eta p B off the gap.
    steps
        Number of steps.
    seed
        Seed of the samples.
    """
    claim = "lemma-2-event"
    _require_chain(claim, G, B, p, s_max, "two", steps)
    require(claim, 0 < eta < 1, "0 < eta < 1", f"eta is {eta}")
    delta = deviation(eta, s_max)
    run = run_replete(G, B, p, PromptLaw.two_sizes(s_max), steps, None, seed)
    missed = int((~run.regular(delta)).sum())
    bound = irregular(G, B, p, delta)
    return event_rows(f"G={G}, B={B}, p={p:g}, s_max={s_max}, eta={eta:g}", missed, steps, bound, G, B, p, delta)


def event_rows(
    regime: str, missed: int, steps: int, bound: float, G: int, B: int, p: float, delta: float
) -> list[Finding]:
    """Return the rows of P(E_k^c): counted against computed, computed against the bound, counted against the bound.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    missed
        Number of steps outside E_k.
    steps
        Number of steps.
    bound
        Bound on P(E_k^c).
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    delta
        Relative deviation that E_k allows.
    """
    exact = missing_probability(G, B, p, delta)
    vacuous = f"the bound is {bound:.3g}: it says nothing" if bound >= 1 else ""
    return [
        Finding(
            regime=regime,
            quantity="steps outside E_k, against G binomials",
            kind="frequency",
            relation="=",
            measured=missed / steps,
            predicted=exact,
            trials=steps,
        ),
        Finding(
            regime=regime,
            quantity="P(E_k^c) from G binomials, against 2 G exp(-delta^2 p B / 3)",
            kind="computed",
            relation="<=",
            measured=exact,
            predicted=bound,
            outside=vacuous,
        ),
        Finding(
            regime=regime,
            quantity="steps outside E_k, against 2 G exp(-delta^2 p B / 3)",
            kind="frequency",
            relation="<=",
            measured=missed / steps,
            predicted=bound,
            outside=vacuous,
            trials=steps,
        ),
    ]


def missing_probability(G: int, B: int, p: float, delta: float) -> float:
    """Return P(E_k^c) of G independent Bin(B, p), summed from its tails: exact also where it is tiny.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    delta
        Relative deviation that E_k allows.
    """
    law, middle = stats.binom(B, p), p * B
    low, high = np.ceil((1 - delta) * middle), np.floor((1 + delta) * middle)
    tails = float(law.cdf(low - 1) + law.sf(high))
    return float(-np.expm1(G * np.log1p(-min(tails, 1 - 1e-16))))


def _require_chain(claim: str, G: int, B: int, p: float, s_max: int, pool: str, steps: int) -> None:
    require_fleet(claim, G, B)
    require_geometric(claim, p)
    require_prompts(claim, s_max)
    require_pool(claim, pool)
    require(claim, steps >= 1, "at least one step to look at", f"steps is {steps}")


_SOURCE = "BF-IO (arXiv 2601.17855), Lemma 2"
_FLEETS = tuple(
    {"G": G, "B": B, "p": p, "s_max": s_max}
    for G, B, p, s_max in (
        (8, 64, 0.5, 4),
        (8, 256, 0.5, 4),
        (8, 1024, 0.5, 4),
        (8, 4096, 0.5, 4),
        (8, 256, 0.2, 4),
        (8, 1024, 0.2, 4),
        (16, 4096, 0.1, 8),
        (256, 256, 0.2, 6),
        (8, 1024, 0.02, 10),
        (8, 16384, 0.02, 10),
    )
)

CLAIMS = (
    Claim(
        name="lemma-2-steps",
        title="The gap after each step of a chain",
        source=f"{_SOURCE}, corrected here",
        statement=r"With a replete pool every step of every chain has the gap of lemma-2, "
        r"$D\le(\bar s-2)+(D^{pre}-[\bar s\min c-(\bar s-1)\max c])^+$, and, with sizes in steps of $d$, that of "
        r"lemma-2-sharp, $D\le(d-1)+(D^{pre}-[\bar s\min c-(\bar s-d)\max c])^+$.",
        refuted_by="One step with a larger gap.",
        measure=measure_steps,
        quick=(*_FLEETS[:3], *_FLEETS[4:6], *_FLEETS[8:9], {**_FLEETS[1], "pool": "all", "peak": "raised"}),
        full=tuple(
            {**fleet, "pool": pool, "peak": peak, "composition": composition, "steps": 2_000}
            for fleet in _FLEETS
            for pool, peak, composition in (
                ("two", "lowest", "even"),
                ("two", "raised", "even"),
                ("all", "lowest", "extreme"),
                ("all", "raised", "even"),
            )
        ),
        expected=Verdict.HOLDS,
        remark="The lemma needs no long queue of slots: it holds below the onset B* as well, where the counts of free "
        "slots are too uneven for it to lower the gap.",
    ),
    Claim(
        name="lemma-2-event",
        title="Free slots are even enough",
        source=f"{_SOURCE}, (17)",
        statement=r"$P(E_k)\ge1-2G\,e^{-\delta^2pB/3}$ with $\delta=\frac{1-\eta}{2s_{\max}-1}$, where "
        r"$E_k=\{(1-\delta)pB\le c_g(k)\le(1+\delta)pB\ \forall g\}$.",
        refuted_by="Steps outside the event more often than that.",
        measure=measure_regular,
        quick=({}, {"B": 64}, {"B": 8192, "steps": 200}),
        full=(
            {"steps": 4_000},
            {"B": 64, "steps": 4_000},
            {"B": 8192, "steps": 4_000},
            {"p": 0.9, "s_max": 2, "B": 512, "steps": 4_000},
            {"G": 16, "p": 0.1, "s_max": 3, "B": 16384, "steps": 1_000},
        ),
        expected=Verdict.HOLDS,
        remark=r"The bound says nothing unless $B\gtrsim12s_{\max}^2\log(2G)/p$; such regimes are marked.",
    ),
)
