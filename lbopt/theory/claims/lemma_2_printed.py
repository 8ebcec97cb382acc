"""Lemma 2 of BF-IO as printed: each assertion that its argument uses is denied by a stored step, and by a found one.

The cases are in `lbopt.theory.steps.statements`. Random steps are looked through until one denies the case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import Asks, at_least, one_of
from lbopt.theory.regime import measured_in
from lbopt.theory.steps.sampled_steps import StepShape, overloaded_steps
from lbopt.theory.steps.statements import CASES, denied_rows

#: Placements of a step whose optima by maximum load are listed one by one.
MOST_LISTED = 20_000


@dataclass(frozen=True, kw_only=True)
class CaseSteps(StepShape):
    """The stored steps of a case, and random ones with as many free slots on every worker.

    Parameters
    ----------
    case
        Name of the assertion.
    c
        Free slots of each worker.
    steps
        Number of steps.
    stored
        Whether the stored steps are looked at first.
    """

    case: str = "min-max"
    G: int = 2
    c: int = 1
    s_max: int = 6
    classes: int = 3
    spread: int = 40
    steps: int = 2_000
    stored: bool = True
    asks: ClassVar[Asks] = {
        "case": one_of(tuple(CASES), "one of the cases"),
        "c": at_least(1, "c >= 1 free slots on every worker"),
        "steps": at_least(1, "at least one step to look at"),
    }

    def require(self, claim: str) -> None:
        """Refuse what cannot be listed."""
        super().require(claim)
        replace(self, c_max=self.c).require_listed(claim, MOST_LISTED)


@measured_in("lemma-2-printed", CaseSteps, without=("c_max",))
def measure_printed(at: CaseSteps, seed: int) -> list[Finding]:
    """Look at the stored steps of a case, then at random ones until its assertion is denied."""
    return _measure(at, seed)


@measured_in(
    "lemma-2-leximax",
    CaseSteps,
    without=("case", "c_max"),
    case="definition-1",
    G=4,
    s_max=10,
    classes=4,
    spread=30,
    steps=6_000,
)
def measure_leximax(at: CaseSteps, seed: int) -> list[Finding]:
    """As `measure_printed`, for what the tie-break alone was hoped to repair."""
    return _measure(at, seed)


def _measure(at: CaseSteps, seed: int) -> list[Finding]:
    drawn = (at.G, at.c, at.s_max, at.classes, at.spread)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 25, *drawn]))
    draw, one = overloaded_steps(replace(at, c_max=at.c)), CASES[at.case]
    known = {f"{at.case}: stored, c={step.free[0]}, s={step.sizes[-1]}": step for step in one.stored}
    regime = f"{at.case}: G={at.G}, c={at.c}, {at.classes} sizes<={at.s_max}, loads<={at.spread}"
    return denied_rows(one, known if at.stored else {}, regime, (draw(rng) for _ in range(at.steps)))


_CASES: tuple[dict[str, Any], ...] = (
    {},
    {"case": "ties"},
    {"case": "separation", "G": 3},
    {"case": "tie-break", "G": 4, "spread": 20},
    {"case": "copies", "c": 2},
)

CLAIMS = (
    claim(
        "lemma-2-printed", measure_printed, quick=_CASES, full=tuple({**regime, "steps": 20_000} for regime in _CASES)
    ),
    claim(
        "lemma-2-leximax",
        measure_leximax,
        quick=({},),
        full=({"steps": 50_000}, {"G": 5, "s_max": 6, "classes": 3, "spread": 15, "steps": 50_000, "stored": False}),
    ),
)
