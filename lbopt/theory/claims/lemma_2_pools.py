"""How much of a replete pool the corrected Lemma 2 of BF-IO needs: two plentiful sizes do, Definition 1 does not."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from lbopt.theory.claim import Claim
from lbopt.theory.claims.lemma_2 import ListedSteps, corrected_bound, measure_steps
from lbopt.theory.finding import Finding
from lbopt.theory.regime import measured_in
from lbopt.theory.steps.sampled_steps import any_overloaded_steps, two_plenty_steps
from lbopt.theory.steps.small_step import SmallStep
from lbopt.theory.verdict import Verdict

#: Loads (4, 2, 4, 4, 4) are optimal, for all four requests of size 3 are on the others.
STORED = SmallStep((1, 0, 1, 1, 1), (1, 1, 1, 1, 1), (1, 2, 3), (3, 2, 4))


@dataclass(frozen=True, kw_only=True)
class TwoPlenty(ListedSteps):
    """Steps in which the largest size and one other are plentiful."""

    c_max: int = 3
    s_max: int = 4
    classes: int = 3
    spread: int = 10


@dataclass(frozen=True, kw_only=True)
class AnyOverloaded(ListedSteps):
    """Steps under Definition 1."""

    G: int = 6
    s_max: int = 3
    classes: int = 3
    spread: int = 8
    optima: int = 5_000


@measured_in("lemma-2-two", TwoPlenty)
def measure_two(at: TwoPlenty, seed: int) -> list[Finding]:
    """List all optima of random steps in which the largest size and one other are plentiful."""
    rng, meets = at.rng("lemma-2-two", seed), attrgetter("has_two_replete")
    return measure_steps(str(at), two_plenty_steps(at), corrected_bound, at.optima, rng, meets)


@measured_in("lemma-2-every", AnyOverloaded)
def measure_every(at: AnyOverloaded, seed: int) -> list[Finding]:
    """List all optima of a stored step, and of random ones, under Definition 1."""
    rng, meets = at.rng("lemma-2-every", seed), attrgetter("is_overloaded")
    return [
        *measure_steps("stored: G=5, c=1, sizes 1, 2, 3", lambda _: STORED, corrected_bound, 1, rng, meets),
        *measure_steps(str(at), any_overloaded_steps(at), corrected_bound, at.optima, rng, meets),
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
