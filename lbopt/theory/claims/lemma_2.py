"""Lemma 2 of BF-IO, corrected: the gap after any optimal step with a replete pool, over listed optima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import MOST, require, require_fleet, require_prompts
from lbopt.theory.regime import Regime, measured_in
from lbopt.theory.steps.sampled_steps import (
    MOST_PLACEMENTS,
    Draw,
    StepShape,
    replete_steps,
    second_opinion,
    until,
)
from lbopt.theory.steps.shrink import Placement, counterexample, shrink
from lbopt.theory.steps.small_step import SmallStep, gaps
from lbopt.theory.verdict import Verdict

Bound = Callable[[SmallStep], int]


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


@dataclass(frozen=True, kw_only=True)
class ListedSteps(StepShape, Regime):
    """Random steps all of whose optima are listed.

    Parameters
    ----------
    optima
        Number of optima to list.
    """

    optima: int = 2_000

    def require(self, claim: str) -> None:
        """Refuse what no step can be drawn from, or too many placements to list."""
        G, c, s_max, classes = self.G, self.c_max, self.s_max, self.classes
        require_fleet(claim, G, 1)
        require_prompts(claim, s_max)
        require(claim, c >= 1, "a free slot somewhere", f"the most free slots of a worker are {c}")
        require(
            claim, 2 <= classes <= s_max, "a pool of 2 to s_max sizes", f"classes is {classes} and s_max is {s_max}"
        )
        differ = f"loads that differ by 0 to {MOST:,} tokens"
        require(claim, 0 <= self.spread <= MOST, differ, f"spread is {self.spread}")
        require(claim, self.optima >= 1, "something to look at", f"optima is {self.optima}")
        require(
            claim,
            self.placements <= MOST_PLACEMENTS,
            f"steps of at most {MOST_PLACEMENTS:,} placements here (all optima are listed)",
            f"G = {G} workers with {c} free slots and {classes} sizes give {self.placements:,}",
        )

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

    def require(self, claim: str) -> None:
        """Refuse fewer than no step."""
        super().require(claim)
        require(claim, self.solved >= 0, "zero or more steps to solve", f"solved is {self.solved}")


@measured_in("lemma-2", SolvedSteps)
def measure_corrected(at: SolvedSteps, seed: int) -> list[Finding]:
    """List all optima of random replete steps until there are `optima`; the first `solved` steps are solved twice."""
    return measure_steps(
        str(at), replete_steps(at), corrected_bound, at.optima, at.rng("lemma-2", seed), solved=at.solved
    )


@measured_in("lemma-2-sharp", ListedSteps)
def measure_sharp(at: ListedSteps, seed: int) -> list[Finding]:
    """As `measure_corrected`, against the sharper bound."""
    return measure_steps(str(at), replete_steps(at), sharp_bound, at.optima, at.rng("lemma-2-sharp", seed))


def measure_steps(
    regime: str,
    draw: Draw,
    bound: Bound,
    optima: int,
    rng: np.random.Generator,
    meets: Callable[[SmallStep], bool] = attrgetter("is_replete"),
    *,
    solved: int = 0,
    leximax: bool = False,
) -> list[Finding]:
    """Return the row of gaps over `bound` among the optima of drawn steps, and the second opinion on some.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    draw
        Draws a step.
    bound
        Returns the bound of a step, tokens.
    optima
        Number of optima to list.
    rng
        Draws the steps.
    meets
        Whether a step meets the hypotheses; what refutes the bound is shrunk within them.
    solved
        First steps that the exact search solves as well.
    leximax
        Whether only the optima of lexicographically least sorted loads count.
    """

    def looked_at(step: SmallStep) -> Placement:
        return step.lexi_optima if leximax else step.optima[1]

    def beyond(step: SmallStep) -> Placement | None:
        wide = gaps(step.loads(looked_at(step))) > bound(step) if meets(step) else np.zeros(1, bool)
        return np.asarray(looked_at(step)[int(np.argmax(wide))]) if wide.any() else None

    trials = violations = equal = at_work = 0
    largest, example = -(1 << 40), None
    kept: list[SmallStep] = []
    steps = 0
    for step in until(draw, optima, rng):
        excess = gaps(step.loads(looked_at(step))) - bound(step)
        steps, trials = steps + 1, trials + len(excess)
        violations, equal = violations + int((excess > 0).sum()), equal + int((excess == 0).sum())
        at_work += len(excess) * (step.gap_before > bound(step))
        largest = max(largest, int(excess.max()))
        if len(kept) < solved:
            kept.append(step)
        if example is None and excess.max() > 0:
            smaller, placement = shrink(step, beyond)
            loads = smaller.loads(placement)
            says = (
                f"least imbalance {smaller.optima[0]}, here at loads {', '.join(map(str, loads))}: "
                f"the gap {gaps(loads)} is above {bound(smaller)}"
            )
            example = counterexample(smaller, placement, says)
    row = Finding(
        regime=regime,
        quantity="gap of " + ("a leximax" if leximax else "an") + " optimum over the bound (tokens)",
        kind="exact",
        relation="<=",
        measured=largest,
        predicted=0,
        trials=trials,
        violations=violations,
        counterexample=example,
        note=f"all {'leximax ' if leximax else ''}optima of {steps} steps; {equal} meet the bound with equality, and "
        f"for {at_work} it asks for less than the gap before",
    )
    return [row, second_opinion(regime, kept)] if solved else [row]


_SOURCE = "BF-IO (arXiv 2601.17855), Lemma 2"
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

CLAIMS = (
    Claim(
        name="lemma-2",
        title="The gap after an optimal step with a replete pool, outcome by outcome",
        source=f"{_SOURCE}, corrected here",
        statement=r"If at least two sizes are present, $\bar s$ the largest, and each has at least $U(k)$ copies, then "
        r"every optimum of (IO) at $H=0$ has "
        r"$D(k)\le(\bar s-2)+\bigl(D^{pre}(k)-[\bar s\min_gc_g-(\bar s-1)\max_gc_g]\bigr)^+$, whatever $c_g\ge0$.",
        refuted_by="One optimum with a larger gap.",
        measure=measure_corrected,
        quick=({}, *_GRID[:2]),
        full=tuple({**regime, "optima": 100_000, "solved": 500} for regime in ({}, *_GRID)),
        expected=Verdict.HOLDS,
        remark=r"Proved in three exchanges: the lightest worker holds only $\bar s$; of those near the maximum, one "
        r"holds none; so what the two admit differs by $\bar s\min c-(\bar s-1)\max c$ or more, which is at least "
        r"$\eta pB$ on $E_k$. It is enough that the largest size and one other are plentiful: lemma-2-two.",
    ),
    Claim(
        name="lemma-2-sharp",
        title="The same with the distances between sizes",
        source="lbopt",
        statement=r"Under the hypotheses of lemma-2, with $v$ the size next below $\bar s$ and $e$ the widest distance "
        r"between neighbouring sizes, every optimum has "
        r"$D(k)\le\max\{e-1,\ (\bar s-v-1)+D^{pre}(k)-[\bar s\min_gc_g-v\max_gc_g]\}$.",
        refuted_by="One optimum with a larger gap.",
        measure=measure_sharp,
        quick=({}, *_GRID[:4]),
        full=tuple({**regime, "optima": 100_000} for regime in ({}, *_GRID)),
        expected=Verdict.HOLDS,
        remark=r"If $D\ge e$, a request of the lightest worker below $\bar s$ can be exchanged for one that waits, of "
        r"the next size, without raising the maximum, so it has none; the second exchange takes $v$. With all sizes "
        r"present $e=1$: the gap is 0 as soon as the counts allow it. Never weaker than lemma-2.",
    ),
)
