r"""Lemma 8 of BF-IO: whatever the growth, a slot spreads at least as its prompt does, and its third moment is bounded.

Computed from the law of a slot seen in step k, when ages go up to k: from the first steps on, and for every phase of a
periodic growth.

The paper asks for any constant C_3. The one here cannot be lowered, for two sizes and a constant growth attain it.

**Proof.** Write s - E[s] <=cx X where X is at least as large in the convex order (Shaked and Shanthikumar, Stochastic
Orders, chapter 3). (1) A prompt of mean m on [1, s_max] is below the prompt s* of the same mean on {1, s_max}. (2) The
growth is a function of min(A, k) that rises by 0 to delta_max with each step of A. So Delta is below delta_max A in the
dispersive order, and Delta - E[Delta] <=cx delta_max (A - E[A]). (3) Sums of independent terms keep the order, and
|x|^3 is convex:

    E|Y - E[Y]|^3 <= C_3 = E|s* - m + delta_max (A - E[A])|^3.

With t = E[A] - (s* - m) / delta_max, each of the two terms is delta_max^3 E|A - t|^3, and A has no memory:

    E|A - t|^3 = 2 (1-p)^n E[(A + n - t)^3] - E[(A - t)^3],   n = max(0, ceil(t)).
"""

from __future__ import annotations

import math
from fractions import Fraction

from lbopt.theory.chains.replete import POOLS, require_pool
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_geometric, require_prompts
from lbopt.theory.laws.growth import Growth
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.slot_law import age_mean, age_third_moment, age_variance, slot_law_at
from lbopt.theory.verdict import Verdict

#: Slots that never ended by the last step must be no larger a share for a stationary moment to be seen.
_STATIONARY = 1e-12

#: Step k looks at k + 1 ages, and there is little to see once all slots were refilled.
MOST_STEPS = 2000


def third_moment_bound(law: PromptLaw, p: float, largest_growth: float) -> float:
    """Return C_3 in tokens cubed: of prompts of the same mean on {1, s_max}, and of the largest growth in every step.

    Parameters
    ----------
    law
        Law of the prompts.
    p
        Probability that a request ends in a step.
    largest_growth
        The largest growth in a step, tokens.
    """
    width, above = law.largest - 1, float(law.mean) - 1
    large = above / width
    apart = ((-above, 1 - large), (width - above, large))  # of s* from its mean, and how probable
    if largest_growth == 0:
        return sum(share * abs(away) ** 3 for away, share in apart)
    cubes = (share * _third_distance(p, age_mean(p) - away / largest_growth) for away, share in apart)
    return largest_growth**3 * sum(cubes)


def usual_bound(s_max: int, p: float, largest_growth: float) -> float:
    r"""Return 4 (s_max^3 + 48 delta_max^3 / p^3), which is enough for the proof of (41), in tokens cubed.

    |Y - E[Y]| <= |s - E[s]| + |Delta - E[Delta]|, so its cube is at most 4 times the sum of cubes; the first is at most
    s_max^3, the second at most 8 E[Delta^3] <= 8 delta_max^3 E[A^3] <= 48 delta_max^3 / p^3.
    """
    return 4 * (s_max**3 + 48 * largest_growth**3 / p**3)


def _third_distance(p: float, t: float) -> float:
    """Return E|A - t|^3 of an age."""
    n = max(0, math.ceil(t))
    return 2 * (1 - p) ** n * _third_about(p, t - n) - _third_about(p, t)


def _third_about(p: float, t: float) -> float:
    """Return E[(A - t)^3] of an age."""
    mean = age_mean(p) - t
    return age_third_moment(p) + 3 * mean * age_variance(p) + mean**3


def measure_lemma_8(
    *, p: float = 0.2, s_max: int = 8, pool: str = "all", growth: str = "1", steps: int = 40, seed: int
) -> list[Finding]:
    """Compute variance and third moment in steps 0 .. `steps`, and take the worst.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    pool
        "all": prompts of every size up to s_max; "two": of 1 and s_max alone.
    growth
        Tokens that a running request gains in a step.
    steps
        Number of steps.
    seed
        Seed of the samples.
    """
    require_geometric("lemma-8", p)
    require_prompts("lemma-8", s_max)
    require_pool("lemma-8", pool)
    require("lemma-8", 0 <= steps <= MOST_STEPS, f"0 to {MOST_STEPS:,} steps", f"steps is {steps}")
    gained = Growth.parse(growth)
    law, most = POOLS[pool](s_max), float(gained.largest)
    seen = [slot_law_at(law, p, gained, k) for k in range(steps + 1)]
    bound, third = third_moment_bound(law, p, most), max(slot.third_absolute_moment for slot in seen)
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
            measured=third,
            predicted=bound,
            tolerance=1e-9,
            trials=len(seen),
            note=f"4 (s_max³ + 48 delta_max³ / p³) is loose by a factor of {usual_bound(s_max, p, most) / third:.3g}",
        ),
    ]
    if pool == "two" and len(gained.cycle) == 1:
        young = (1 - p) ** steps if most else 0.0
        found.append(
            Finding(
                regime=regime,
                quantity="largest E|Y-EY|³ over the steps (tokens³): C_3 is attained",
                kind="computed",
                relation="=",
                measured=third,
                predicted=bound,
                tolerance=1e-6,
                trials=len(seen),
                outside=f"after {steps} steps a share of {young:.2g} of the slots has never ended"
                if young > _STATIONARY
                else "",
            )
        )
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
_SIZES = ((0.2, 8), (0.5, 2), (0.05, 30))

CLAIMS = (
    Claim(
        name="lemma-8",
        title="A slot spreads at least as its prompt does",
        source="BF-IO, Lemma 8, equations (39) to (41)",
        statement=r"For every step $k$ and every growth, $\mathrm{Var}\,a(k) \ge \sigma_s^2$, with equality at "
        r"$\delta = 0$, and $E|a(k)-Ea(k)|^3 \le C_3 = E|s^*-Es^*+\delta_{\max}(A-EA)|^3$, $s^*$ of the mean of $s$ on "
        r"$\{1,s_{\max}\}$, with equality in the limit for two sizes and a constant growth.",
        refuted_by="A computed moment on the wrong side, or one below C_3 where it is attained.",
        measure=measure_lemma_8,
        quick=(
            *({"growth": growth} for growth in _GROWTHS),
            *({"pool": "two", "growth": growth, "steps": 150} for growth in ("0", "1", "3")),
        ),
        full=(
            *({"p": p, "s_max": s, "growth": growth} for p, s in _SIZES for growth in _GROWTHS),
            *(
                {"p": p, "s_max": s, "pool": "two", "growth": growth, "steps": round(32 / p)}
                for p, s in _SIZES
                for growth in _GROWTHS
            ),
        ),
        expected=Verdict.HOLDS,
        remark=r"The paper leaves $C_3$ open; the constant is lbopt's and cannot be lowered. The usual one, "
        r"$4\,(s_{\max}^3+48\,\delta_{\max}^3/p^3)$, is loose by a factor of 35 and more, as the notes measure.",
    ),
)
