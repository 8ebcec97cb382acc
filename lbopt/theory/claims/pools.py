"""Theorem 2 on arrival instances of the overloaded family: what FCFS does not depend on, and what BF-IO leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lbopt.theory.chains.batch_means import Average, batch_steps, steps_mean
from lbopt.theory.chains.pooled_chain import ARRIVALS, PooledRun, Rule, best_placement, first_come, run_pooled
from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.gap_bounds import least_gap, outside_onset
from lbopt.theory.laws.load_law import improvement_floor, load_law
from lbopt.theory.laws.slot_law import LLM, PromptLaw, slot_law
from lbopt.theory.laws.spacing import least_left
from lbopt.theory.regime import Asks, Batched, PromptFleet, measured_in, one_of, require, require_all

#: Steps go one by one through Python; larger fleets take hours.
_MOST_SLOTS = 100_000


@dataclass(frozen=True, kw_only=True)
class ArrivalFleet(Batched, PromptFleet):
    """A fleet that meets an arrival instance of the overloaded family.

    Parameters
    ----------
    arrivals
        How requests arrive: "minimal" or "bursty".
    """

    G: int = 4
    B: int = 64
    s_max: int = 8
    arrivals: str = "minimal"
    batches: int = 40
    asks: ClassVar[Asks] = {"arrivals": one_of(ARRIVALS, "arrivals that are one of")}

    def require(self, claim: str) -> None:
        """Refuse fleets too large to go step by step."""
        super().require(claim)
        slots = self.G * self.B
        require(claim, slots <= _MOST_SLOTS, f"at most {_MOST_SLOTS:,} slots in all", f"G B is {slots:,}")

    @property
    def law(self) -> PromptLaw:
        """The law of the sizes that arrive."""
        return PromptLaw.uniform(self.s_max)

    def __str__(self) -> str:
        """Return the fleet in the words of the report."""
        return f"{super().__str__()}, {self.law.name}, {self.arrivals} arrivals"

    def run(self, rule: Rule, seed: int) -> tuple[PooledRun, Average]:
        """Return the run of a rule, and its mean imbalance."""
        length = batch_steps(self.p)
        steps, own = self.batches * length, int(np.uint32(seed))
        found = run_pooled(rule, self.G, self.B, self.p, self.law, steps, self.arrivals, own)
        return found, steps_mean(found.imbalance, length)


@dataclass(frozen=True, kw_only=True)
class SizedFleet(ArrivalFleet):
    """A fleet that meets given sizes.

    Parameters
    ----------
    s_max
        Largest prompt, tokens; all sizes up to it arrive.
    sizes
        The sizes that arrive instead, such as 1+4+7, each as often; empty: those up to s_max.
    """

    B: int = 384
    s_max: int = 4
    sizes: str = ""
    batches: int = 20

    def require(self, claim: str) -> None:
        """Refuse sizes that are none."""
        super().require(claim)
        if self.sizes:
            sizes_law(claim, self.sizes)

    @property
    def law(self) -> PromptLaw:
        """The law of the sizes that arrive."""
        return sizes_law("theorem-2-pools", self.sizes) if self.sizes else super().law


@measured_in("fcfs-any-arrivals", ArrivalFleet)
def measure_any_arrivals(at: ArrivalFleet, seed: int) -> list[Finding]:
    """Run FCFS on an instance of the overloaded family, and compare with the computed law."""
    _, mean = at.run(first_come, seed)
    exact = load_law(slot_law(at.law, at.p), at.B).expected_imbalance(at.G)
    return [mean.finding(str(at), "mean imbalance of FCFS (tokens)", exact)]


@measured_in("theorem-2-pools", SizedFleet)
def measure_pools(at: SizedFleet, seed: int) -> list[Finding]:
    """Run BF-IO on an instance of the overloaded family, every step at a proved optimum."""
    run, mean = at.run(best_placement, seed)
    law, slot = at.law, slot_law(at.law, at.p)
    exact = load_law(slot, at.B).expected_imbalance(at.G)
    floor = improvement_floor(at.G, at.B, math.sqrt(slot.variance), max(1, least_gap(law.largest)))
    outside = outside_onset(at.G, at.B, at.p, law)
    rows = [
        mean.finding(
            str(at),
            "share of FCFS's imbalance left by BF-IO",
            1 / floor,
            "<=",
            unit=exact,
            undecided=run.undecided,
            outside=outside,
            note=f"an improvement of at least {floor:.3g} was claimed; {_improved(exact, mean.mean)}; mean imbalance "
            f"{mean.mean:.4g}; mean admitted prompt {run.admitted_prompt:.2f} of {float(law.mean):g} that arrive, "
            f"which FCFS admits; longest wait {run.longest_wait} steps",
        )
    ]
    d = math.gcd(*(size - law.lengths[0] for size in law.lengths))
    if d > 1:
        rows.append(
            mean.finding(
                str(at),
                "mean imbalance of BF-IO against the law of the spacing (tokens)",
                least_left(at.G, at.B, at.p, d, LLM).mean,
                undecided=run.undecided,
                outside=outside,
                note=f"the greatest common divisor of the differences of sizes is {d}",
            )
        )
    return rows


def _improved(fcfs: float, left: float) -> str:
    return f"FCFS has {fcfs / left:,.3g} times the imbalance" if left else "nothing was left"


def sizes_law(claim: str, sizes: str) -> PromptLaw:
    """Return the law of sizes that are written ``1+4+7``, each as often.

    Of two sizes Definition 1 asks for U(k) copies each: the one that is chosen less often waits in ever larger numbers.
    """
    parts = sizes.split("+")
    require(claim, all(part.isdecimal() for part in parts), "sizes such as 1+4+7, in tokens", f"sizes is '{sizes}'")
    found = tuple(sorted({int(part) for part in parts}))
    require(claim, len(found) >= 3, "at least three sizes, or the pool grows without end", f"sizes is '{sizes}'")
    require_all(claim, {"s_max": found[-1]})
    return PromptLaw(found, (1,) * len(found), f"s in {{{','.join(map(str, found))}}}")


CLAIMS = (
    claim(
        "fcfs-any-arrivals",
        measure_any_arrivals,
        quick=[{"arrivals": arrivals} for arrivals in ARRIVALS],
        full=[
            {"G": G, "B": B, "p": p, "arrivals": arrivals, "batches": 200}
            for G, B, p in ((4, 64, 0.5), (2, 256, 0.2), (16, 32, 0.2))
            for arrivals in ARRIVALS
        ],
    ),
    claim(
        "theorem-2-pools",
        measure_pools,
        quick=({}, {"sizes": "1+4+7", "batches": 40}, {"B": 16, "p": 0.2}),
        full=(
            *({"arrivals": arrivals, "batches": 25} for arrivals in ARRIVALS),
            {"G": 8, "B": 288, "s_max": 8},
            {"G": 8, "B": 288, "s_max": 8, "arrivals": "bursty"},
            *({"sizes": "1+4+7", "arrivals": arrivals, "batches": 100} for arrivals in ARRIVALS),
            {"G": 3, "B": 96, "sizes": "1+7+11", "batches": 100},
            {"B": 16, "p": 0.2},
        ),
    ),
)
