"""Lemma 2 of BF-IO, corrected and as printed: the gap after an optimal step, by how much of the pool is plentiful.

A replete pool has plenty of every size; two plentiful sizes do as well. Definition 1, the paper's own hypothesis, does
not for every optimum, and does with a rule for ties; the proof follows.

Worker g has load P_g before admission and c_g free slots; S_g is what it admits, Sigma_g its sum, L_g = P_g + Sigma_g,
M = max L, D = M - min L. s is the largest size in the pool, s >= 2; n_x and u_x count admitted and unadmitted requests
of size x. Definition 1: for every size x the pool has at least U = sum c_g requests that are not of size x.

**Theorem.** Let bound = (s - 2) + (D_pre - [s min c - (s - 1) max c])^+. (i) An optimum at which no exchange of two
admitted requests of two workers brings both new loads below the larger old one has D <= bound; leximax optima and those
of least sum of squares are such optima. (ii) If the pool has U requests of size s, every optimum has D <= bound.

**Proof.** Suppose D > bound. Then D >= s - 1. With h a lightest worker and d_g = M - L_g + 1 >= 1, the difference
Sigma_g - Sigma_h = (L_g - L_h) - (P_g - P_h) gives

    (*)  Sigma_g >= Sigma_h + s - d_g - s min c + (s - 1) max c   for every g.

Let b = min S_h, or b = s where S_h is empty, so that Sigma_h >= b c_h >= b min c. Three facts hold.

1. No unadmitted size is above b. Otherwise x > b takes b's place in h: L_h rises by at most s - 1 <= D, so M stays, the
   sum grows, and the imbalance falls. (Under (ii) some s is unadmitted unless all U admitted ones are s, so b = s.)
2. If d_g <= b - 1, no size in S_g is above b. For b = s that is plain. Otherwise L_g - L_h = D + 1 - d_g >= s - b + 1,
   so a > b in S_g and b in S_h can be exchanged: both new loads are below L_g, which (i) excludes.
3. n_b(g) >= b - d_g. By 2, and because sizes other than b are at most b - 1 there, n_b(g) >= Sigma_g - (b - 1) c_g,
   which by (*) is at least s - d_g + (s - b)(max c - min c) >= b - d_g.

Let A_d = {g : d_g <= d}. Summed, n_b >= sum over d < b of |A_d|. Definition 1 at x = b leaves at least n_b unadmitted
requests that are not b, and by 1 they are smaller: sum over d < b of u_(b-d) >= sum of |A_d|. Is b = 1, then n_1 >= 1
such requests of size 0 would be needed: a contradiction. Else some d <= b - 1 has u_(b-d) >= |A_d|. In each worker of
A_d replace one b (there is one, by 3) by b - d: loads in A_d fall by d to at most M - d, where all others are already.
h is not in A_d, because d_h = D + 1 >= s > d, so M falls by d or more and the sum by d |A_d| <= d (G - 1): the
imbalance falls. This contradicts optimality, and ends the proof.

For loads that are not whole put d_g = floor(M - L_g) + 1; the same steps give D < (s - 1) + (...)^+.

**Sharper, for (ii).** With a plentiful s every optimum has D <= floor((s - 1) (G - 1) / G) + (...)^+, which is s - 2
for G >= s - 1, else less. Suppose not, and let j = floor((s - 1) (G - 1) / G) + 1, so that D >= j and G D > (s - 1)
(G - 1). If h held b < s, an unadmitted s in its place would change G M by G (s - b - D)^+ and the sum by s - b: the
imbalance falls, for (G - 1) (s - b) < G D. So h holds s alone, and as in 3, with j for s - 1, n_s(g) >= j + 1 - d_g;
summed, n_s >= sum over x <= j of |A_x|, and h is in none of these. For d = 1 .. s - 1 let x(d) = floor(d (G - 1) / G)
+ 1 <= d: it takes every value 1 .. j, and s - 1 - j values once more. Were u_(s-d) < |A_x(d)| for every d, all u
together would be at most sum over x <= j of |A_x| + (s - 1 - j) (G - 1) - (s - 1), which is below n_s, for j (G - 1)
> (s - 1) (G - 1)^2 / G > (s - 1) (G - 2); Definition 1 at s forbids it. So some d has u_(s-d) >= |A_x|, x = x(d). In
each worker of A_x replace one s by s - d: M falls by x or more, the sum by d |A_x| <= d (G - 1) < G x, so the
imbalance falls.

Lemma 2 of BF-IO as printed: each assertion that its argument uses is denied by a stored step, and by a found one.

The cases are in `lbopt.theory.steps.statements`. Random steps are looked through until one denies the case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.regime import Asks, at_least, between, measured_in, one_of, require
from lbopt.theory.steps.small_step import (
    MOST_PLACEMENTS,
    SmallStep,
    StepShape,
    any_overloaded_steps,
    overloaded_steps,
    replete_steps,
    second_opinion,
    two_plenty_steps,
    until,
)
from lbopt.theory.steps.statements import CASES, denied_rows, gap_within, held_against

#: Loads (4, 2, 4, 4, 4) are optimal, for all four requests of size 3 are on the others.
STORED = SmallStep((1, 0, 1, 1, 1), (1, 1, 1, 1, 1), (1, 2, 3), (3, 2, 4))

NAME = "lemma-2-definition-1"

#: Loads whose squares sum to whole numbers of the machine.
_WIDEST = 1_000_000


def corrected_bound(step: SmallStep) -> int:
    """Return (s - 2) + (D_pre - [s min c - (s - 1) max c])^+ with s the largest size present, tokens."""
    s = step.sizes[-1]
    return s - 2 + max(0, step.gap_before - (s * min(step.free) - (s - 1) * max(step.free)))


def sharp_bound(step: SmallStep) -> int:
    """Return max{e - 1, (d - 1) + D_pre - [s min c - v max c]}, tokens: v the size below s, d = s - v, e the widest
    distance between neighbouring sizes."""
    v, s = step.sizes[-2:]
    apart = max(b - a for a, b in zip(step.sizes, step.sizes[1:], strict=False))
    return max(apart - 1, s - v - 1 + step.gap_before - (s * min(step.free) - v * max(step.free)))


def plentiful_bound(step: SmallStep) -> int:
    """Return the bound of `corrected_bound` with floor((s - 1) (G - 1) / G) in place of s - 2, tokens."""
    s, G = step.sizes[-1], len(step.free)
    return corrected_bound(step) - (s - 2) + (s - 1) * (G - 1) // G


@dataclass(frozen=True, kw_only=True)
class ListedSteps(StepShape):
    """Random steps all of whose optima are listed.

    Parameters
    ----------
    optima
        Number of optima to list.
    """

    optima: int = 2_000
    asks: ClassVar[Asks] = {"optima": at_least(1, "something to look at")}

    def require(self, claim: str) -> None:
        """Refuse what no step can be drawn from, or too many placements to list."""
        super().require(claim)
        self.require_listed(claim, MOST_PLACEMENTS)

    def __str__(self) -> str:
        """Return the regime in the words of the report."""
        return f"G={self.G}, c<={self.c_max}, {self.classes} sizes<={self.s_max}, loads<={self.spread}"

    def rng(self, claim: str, seed: int) -> np.random.Generator:
        """Return the regime's own randomness."""
        drawn = (self.G, self.c_max, self.s_max, self.classes, self.spread)
        return np.random.default_rng(np.random.SeedSequence([seed, *claim.encode(), *drawn]))


@dataclass(frozen=True, kw_only=True)
class SolvedSteps(ListedSteps):
    """Of them, some are solved as well.

    Parameters
    ----------
    solved
        First steps that the exact search solves as well.
    """

    solved: int = 40
    asks: ClassVar[Asks] = {"solved": at_least(0, "zero or more steps to solve")}


@dataclass(frozen=True, kw_only=True)
class RandomSteps(ListedSteps):
    """Steps under Definition 1, some with at least so many free slots everywhere.

    Parameters
    ----------
    c_min
        Fewest free slots of a worker.
    """

    c_min: int = 0
    asks: ClassVar[Asks] = {"spread": between(0, _WIDEST, f"loads that differ by at most {_WIDEST:,} tokens")}

    def require(self, claim: str) -> None:
        """Refuse fewest slots above the most."""
        super().require(claim)
        slots = f"c_min is {self.c_min} and c_max is {self.c_max}"
        require(claim, 0 <= self.c_min <= self.c_max, "0 <= c_min <= c_max", slots)

    def __str__(self) -> str:
        """Return the regime in the words of the report."""
        return super().__str__().replace("c<=", "c<=" if self.c_min == 0 else f"c={self.c_min}..")

    def steps(self, claim: str, seed: int, *, plentiful: bool) -> list[SmallStep]:
        """Return steps under Definition 1, with a plentiful largest size or without, until they have `optima`."""
        draw = any_overloaded_steps(self, self.c_min, plentiful=plentiful)
        return list(until(draw, self.optima, self.rng(claim, seed)))


#: Steps under Definition 1 that try it.
_ANY_POOL: dict[str, Any] = {"G": 6, "s_max": 3, "classes": 3, "spread": 8, "optima": 5_000}


@measured_in("lemma-2", SolvedSteps)
def measure_corrected(at: SolvedSteps, seed: int) -> list[Finding]:
    """List all optima of random replete steps until there are `optima`; the first `solved` steps are solved twice."""
    steps = list(until(replete_steps(at), at.optima, at.rng("lemma-2", seed)))
    row = held_against(gap_within(corrected_bound), str(at), steps)
    return [row, second_opinion(str(at), steps[: at.solved])] if at.solved else [row]


@measured_in("lemma-2-sharp", ListedSteps)
def measure_sharp(at: ListedSteps, seed: int) -> list[Finding]:
    """As `measure_corrected`, against the sharper bound."""
    steps = until(replete_steps(at), at.optima, at.rng("lemma-2-sharp", seed))
    return [held_against(gap_within(sharp_bound), str(at), steps)]


@measured_in("lemma-2-two", ListedSteps, c_max=3, s_max=4, classes=3, spread=10)
def measure_two(at: ListedSteps, seed: int) -> list[Finding]:
    """List all optima of random steps in which the largest size and one other are plentiful."""
    steps = until(two_plenty_steps(at), at.optima, at.rng("lemma-2-two", seed))
    return [held_against(gap_within(corrected_bound), str(at), steps)]


@measured_in("lemma-2-every", ListedSteps, **_ANY_POOL)
def measure_every(at: ListedSteps, seed: int) -> list[Finding]:
    """List all optima of a stored step, and of random ones, under Definition 1."""
    said = gap_within(corrected_bound)
    steps = until(any_overloaded_steps(at), at.optima, at.rng("lemma-2-every", seed))
    return [held_against(said, "stored: G=5, c=1, sizes 1, 2, 3", [STORED]), held_against(said, str(at), steps)]


@measured_in(NAME, RandomSteps, **_ANY_POOL)
def measure_theorem(at: RandomSteps, seed: int) -> list[Finding]:
    """List optima under Definition 1: leximax ones, those of least squares, and, with s plentiful, all."""
    any_pool, plentiful = (at.steps(NAME, seed, plentiful=plenty) for plenty in (False, True))
    parts = (("(i) ", "leximax", any_pool), ("(i) ", "squares", any_pool), ("(ii) ", "every", plentiful))
    return [held_against(gap_within(corrected_bound, ties, part), str(at), steps) for part, ties, steps in parts]


@measured_in(f"{NAME}-sharp", RandomSteps, G=3, classes=2, spread=3, optima=5_000)
def measure_plentiful(at: RandomSteps, seed: int) -> list[Finding]:
    """List all optima of random steps under Definition 1 whose largest size is plentiful, against the sharper bound."""
    steps = at.steps(f"{NAME}-sharp", seed, plentiful=True)
    return [held_against(gap_within(plentiful_bound, part="(ii) "), str(at), steps)]


_GRID: Sequence[dict[str, int]] = (
    {"G": 2, "c_max": 3, "s_max": 4, "classes": 2, "spread": 12},
    {"G": 4, "c_max": 3, "s_max": 4, "classes": 2, "spread": 10},
    {"G": 3, "c_max": 2, "s_max": 5, "classes": 5, "spread": 12},
    {"G": 4, "c_max": 2, "s_max": 3, "classes": 3, "spread": 6},
    {"G": 2, "c_max": 6, "s_max": 8, "classes": 3, "spread": 40},
    {"G": 3, "c_max": 3, "s_max": 6, "classes": 3, "spread": 30},
    {"G": 3, "c_max": 3, "s_max": 8, "classes": 2, "spread": 30},
    {"G": 5, "c_max": 2, "s_max": 4, "classes": 2, "spread": 8},
)

#: Few workers and large sizes, where the sharper bound is below the other one.
_FEW = tuple(
    {"G": G, "c_max": c, "s_max": s, "classes": classes, "spread": spread}
    for G, c, s, classes, spread in (
        (2, 3, 6, 2, 6),
        (3, 3, 5, 2, 5),
        (2, 4, 6, 2, 12),
        (2, 5, 9, 4, 12),
        (3, 2, 5, 2, 3),
        (4, 3, 6, 2, 3),
        (4, 2, 9, 2, 3),
        (5, 2, 7, 2, 3),
    )
)

CORRECTED = (
    claim("lemma-2", measure_corrected, quick=({},), full=({"optima": 20_000, "solved": 200},)),
    claim(
        "lemma-2-sharp",
        measure_sharp,
        quick=({}, *_GRID[:4]),
        full=tuple({**regime, "optima": 100_000} for regime in ({}, *_GRID)),
    ),
    claim("lemma-2-two", measure_two, quick=({},), full=({"optima": 20_000},)),
    claim(
        "lemma-2-every",
        measure_every,
        quick=({},),
        full=({"optima": 100_000}, {"G": 5, "c_max": 2, "s_max": 4, "optima": 100_000}),
    ),
    claim(NAME, measure_theorem, quick=({},), full=({"optima": 50_000},)),
    claim(
        f"{NAME}-sharp",
        measure_plentiful,
        quick=({}, *_FEW[:2]),
        full=tuple({**regime, "optima": 20_000} for regime in _FEW),
    ),
)


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

PRINTED = (
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
