"""Lemma 8 of BF-IO: whatever the growth, a slot spreads at least as its prompt does, and its third moment is bounded.

Computed from the law of a slot seen in step k, when ages go up to k: from the first steps on, and for every phase of a
periodic growth.
"""

from __future__ import annotations

from fractions import Fraction

from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_geometric, require_prompts
from lbopt.theory.laws.growth import Growth
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.slot_law import age_mean, age_third_moment, age_variance, slot_law_at
from lbopt.theory.verdict import Verdict

#: Step k looks at k + 1 ages, and there is little to see once all slots were refilled.
MOST_STEPS = 2000


def third_moment_bound(s_max: int, p: float, largest_growth: float) -> float:
    r"""Return C_3 = 4 (s_max^3 + 48 delta_max^3 / p^3) of (41), in tokens cubed.

    |Y - E[Y]| <= |s - E[s]| + |Delta - E[Delta]|, so its cube is at most 4 times the sum of cubes; the first is at most
    s_max^3, the second at most 8 E[Delta^3] <= 8 delta_max^3 E[A^3] <= 48 delta_max^3 / p^3.
    """
    return 4 * (s_max**3 + 48 * largest_growth**3 / p**3)


def measure_lemma_8(*, p: float = 0.2, s_max: int = 8, growth: str = "1", steps: int = 40, seed: int) -> list[Finding]:
    """Compute variance and third moment in steps 0 .. `steps`, and take the worst.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    growth
        Tokens that a running request gains in a step.
    steps
        Number of steps.
    seed
        Seed of the samples.
    """
    require_geometric("lemma-8", p)
    require_prompts("lemma-8", s_max)
    require("lemma-8", 0 <= steps <= MOST_STEPS, f"0 to {MOST_STEPS:,} steps", f"steps is {steps}")
    gained = Growth.parse(growth)
    law = PromptLaw.uniform(s_max)
    seen = [slot_law_at(law, p, gained, k) for k in range(steps + 1)]
    bound = third_moment_bound(s_max, p, float(gained.largest))
    cubed = age_third_moment(p) + 3 * age_mean(p) * age_variance(p) + age_mean(p) ** 3
    regime = f"p={p:g}, {law.name}, growth {growth}"
    found = [
        Finding(
            regime=regime,
            quantity="least variance of a slot over the steps (tokens²), against the prompt's",
            kind="computed",
            relation=">=",
            measured=min(slot.variance for slot in seen),
            predicted=float(law.variance),
            tolerance=1e-9,
            trials=len(seen),
        ),
        Finding(
            regime=regime,
            quantity="largest E|Y-EY|³ over the steps (tokens³), against C_3",
            kind="computed",
            relation="<=",
            measured=max(slot.third_absolute_moment for slot in seen),
            predicted=bound,
            trials=len(seen),
        ),
        Finding(
            regime=regime,
            quantity="E[A³] (steps³), against 6/p³",
            kind="computed",
            relation="<=",
            measured=cubed,
            predicted=6 / p**3,
            trials=1,
        ),
    ]
    if gained.largest == Fraction(0):
        found.append(
            Finding(
                regime=regime,
                quantity="largest variance over the steps (tokens²): equality without growth",
                kind="computed",
                relation="=",
                measured=max(slot.variance for slot in seen),
                predicted=float(law.variance),
                tolerance=1e-9,
                trials=len(seen),
            )
        )
    return found


_GROWTHS = ("0", "1/2", "1", "3", "0+1+3")

CLAIMS = (
    Claim(
        name="lemma-8",
        title="A slot spreads at least as its prompt does",
        source="BF-IO, Lemma 8, equations (39) to (41)",
        statement=r"For every step $k$ and every growth, $\mathrm{Var}\,a(k) \ge \sigma_s^2$, with equality at "
        r"$\delta = 0$, and $E|a(k)-Ea(k)|^3 \le C_3 = 4\,(s_{\max}^3 + 48\,\delta_{\max}^3/p^3)$.",
        refuted_by="A computed moment on the wrong side.",
        measure=measure_lemma_8,
        quick=[{"growth": growth} for growth in _GROWTHS],
        full=[
            {"p": p, "s_max": s, "growth": growth} for p, s in ((0.2, 8), (0.5, 2), (0.05, 30)) for growth in _GROWTHS
        ],
        expected=Verdict.HOLDS,
        remark="The paper leaves C_3 open; the constant is lbopt's.",
    ),
)
