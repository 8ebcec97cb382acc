"""How much of a replete pool the corrected Lemma 2 of BF-IO needs: two plentiful sizes do, Definition 1 does not."""

from __future__ import annotations

from operator import attrgetter

from lbopt.theory.claim import Claim
from lbopt.theory.claims.lemma_2 import corrected_bound, measure_steps, regime_of, require_steps
from lbopt.theory.finding import Finding
from lbopt.theory.steps.sampled_steps import any_overloaded_steps, two_plenty_steps
from lbopt.theory.steps.small_step import SmallStep
from lbopt.theory.verdict import Verdict

#: Loads (4, 2, 4, 4, 4) are optimal, for all four requests of size 3 are on the others.
STORED = SmallStep((1, 0, 1, 1, 1), (1, 1, 1, 1, 1), (1, 2, 3), (3, 2, 4))


def measure_two(
    *,
    G: int = 3,
    c_max: int = 3,
    s_max: int = 4,
    classes: int = 3,
    spread: int = 10,
    optima: int = 2_000,
    seed: int,
) -> list[Finding]:
    """List all optima of random steps in which the largest size and one other are plentiful.

    Parameters
    ----------
    G
        Number of workers.
    c_max
        Most free slots of a worker.
    s_max
        Largest prompt, tokens.
    classes
        Number of different sizes.
    spread
        Largest difference of loads before admission, tokens.
    optima
        Number of optima to list.
    seed
        Seed of the samples.
    """
    rng = require_steps("lemma-2-two", G, c_max, s_max, classes, spread, optima, 0, seed)
    draw = two_plenty_steps(G, c_max, s_max, classes, spread)
    regime = regime_of(G, c_max, s_max, classes, spread)
    return measure_steps(regime, draw, corrected_bound, optima, 0, rng, attrgetter("has_two_replete"))


def measure_every(
    *,
    G: int = 6,
    c_max: int = 2,
    s_max: int = 3,
    classes: int = 3,
    spread: int = 8,
    optima: int = 5_000,
    seed: int,
) -> list[Finding]:
    """List all optima of a stored step, and of random ones, under Definition 1.

    Parameters
    ----------
    G
        Number of workers.
    c_max
        Most free slots of a worker.
    s_max
        Largest prompt, tokens.
    classes
        Number of different sizes.
    spread
        Largest difference of loads before admission, tokens.
    optima
        Number of optima to list.
    seed
        Seed of the samples.
    """
    rng = require_steps("lemma-2-every", G, c_max, s_max, classes, spread, optima, 0, seed)
    draw = any_overloaded_steps(G, c_max, s_max, classes, spread)
    regime, meets = regime_of(G, c_max, s_max, classes, spread), attrgetter("is_overloaded")
    return [
        *measure_steps("stored: G=5, c=1, sizes 1, 2, 3", lambda _: STORED, corrected_bound, 1, 0, rng, meets),
        *measure_steps(regime, draw, corrected_bound, optima, 0, rng, meets),
    ]


_SOURCE = "BF-IO (arXiv 2601.17855), Lemma 2"
_GRID = tuple(
    {"G": G, "c_max": c, "s_max": s, "classes": classes, "spread": spread}
    for G, c, s, classes, spread in (
        (2, 5, 5, 4, 20),
        (3, 3, 4, 3, 10),
        (3, 5, 3, 3, 15),
        (4, 3, 3, 3, 10),
        (3, 4, 4, 4, 15),
        (5, 2, 3, 3, 8),
    )
)

CLAIMS = (
    Claim(
        name="lemma-2-two",
        title="Lemma 2 with two plentiful sizes",
        source="lbopt",
        statement=r"If the largest size $\bar s$ and one other have at least $U(k)$ copies each, whatever the others "
        r"have, every optimum of (IO) at $H=0$ has "
        r"$D(k)\le(\bar s-2)+\bigl(D^{pre}(k)-[\bar s\min_gc_g-(\bar s-1)\max_gc_g]\bigr)^+$.",
        refuted_by="One optimum with a larger gap.",
        measure=measure_two,
        quick=({}, _GRID[3]),
        full=tuple({**regime, "optima": 100_000} for regime in _GRID),
        expected=Verdict.HOLDS,
        remark=r"The proof of lemma-2 exchanges for waiting requests of two sizes only: $\bar s$ on the lightest "
        r"worker, the other one on all workers near the maximum.",
    ),
    Claim(
        name="lemma-2-every",
        title="Lemma 2 under Definition 1, for every optimum",
        source=f"{_SOURCE}, with the bound of lemma-2",
        statement=r"Under Definition 1 every optimum of (IO) at $H=0$ has "
        r"$D(k)\le(\bar s-2)+\bigl(D^{pre}(k)-[\bar s\min_gc_g-(\bar s-1)\max_gc_g]\bigr)^+$.",
        refuted_by="One optimum with a larger gap.",
        measure=measure_every,
        quick=({},),
        full=({"optima": 100_000}, {"G": 5, "c_max": 2, "s_max": 4, "optima": 100_000}),
        expected=Verdict.REFUTED,
        remark=r"Loads $(1,0,1,1,1)$, one free slot each, pool $\{1,1,1,2,2,3,3,3,3\}$: loads $(4,2,4,4,4)$ are an "
        r"optimum with gap 2, and the bound is 1. The lightest worker cannot have a 3, for all are taken. Other optima "
        r"of that step have gap 1, and leximax ones must: lemma-2-definition-1. It is the second part of that theorem "
        r"without its hypothesis.",
    ),
)
