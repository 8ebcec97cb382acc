"""What the argument of the printed Lemma 2 of BF-IO uses: one assertion a case, and a step that denies it.

All steps have the same number c >= 1 of free slots on every worker (so that E_k holds whatever its delta) and a pool
that meets Definition 1; s is the largest size present, which is the weakest reading of what is to be denied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.theory.steps.shrink import Placement
from lbopt.theory.steps.small_step import SmallStep, gaps


@dataclass(frozen=True, slots=True)
class Case:
    """An assertion about optima of a step, by what denies it.

    Parameters
    ----------
    asserts
        What is said of every such optimum, for the report.
    among
        The placements that it is said of, int64 (n, G, m).
    excess
        (n,): above 0 where it is denied; for gaps, by how many tokens.
    stored
        Steps in which it is denied.
    """

    asserts: str
    among: Callable[[SmallStep], Placement]
    excess: Callable[[SmallStep, Placement], NDArray[np.int64]]
    stored: tuple[SmallStep, ...]


def least_maximum(step: SmallStep) -> Placement:
    """Return the leximax ones among all placements: those of least maximum load, ties broken as the lemmas need."""
    return step.leximax(step.placements)


def not_reduced(step: SmallStep, found: Placement) -> NDArray[np.int64]:
    """Return D - max(s, D_pre - c), s the largest size present."""
    return np.asarray(gaps(step.loads(found)) - max(step.sizes[-1], step.gap_before - step.free[0]))


def not_separated(step: SmallStep, found: Placement) -> NDArray[np.int64]:
    """Return 1 where the gap is above s and no heaviest worker's requests are all smaller than those of a lightest."""
    loads = step.loads(found)
    sizes = np.array(step.sizes)
    largest = np.where(found > 0, sizes, 0).max(axis=2)
    smallest = np.where(found > 0, sizes, sizes[-1] + 1).min(axis=2)
    heavy, light = loads == loads.max(axis=1)[:, None], loads == loads.min(axis=1)[:, None]
    lowest = np.where(heavy, largest, sizes[-1] + 1).min(axis=1)
    highest = np.where(light, smallest, 0).max(axis=1)
    return np.asarray(((gaps(loads) > sizes[-1]) & (lowest >= highest)).astype(np.int64))


def not_the_largest(step: SmallStep, found: Placement) -> NDArray[np.int64]:
    """Return 1 where the gap is s - 1 or more and yet every lightest worker holds a request that is below s."""
    loads = step.loads(found)
    light = loads == loads.min(axis=1)[:, None]
    smaller = (found[:, :, :-1] > 0).any(axis=2)
    return np.asarray(((gaps(loads) >= step.sizes[-1] - 1) & (smaller | ~light).all(axis=1)).astype(np.int64))


def stubborn_step(c: int, x: int) -> SmallStep:
    """Return a step that meets Definition 1 and whose only optimum leaves D = D_pre, for any c >= 1 and x >= c s.

    Loads (x, 0, x), c free slots each, sizes s - 3^j for j = 0 .. 3c - 1, one of each, and 3c copies of the largest,
    s = 3^(3c-1) + 1. Let the heavy workers stay r_1 <= r_2 tokens below x + c s, and the light one r_0 below c s, so
    that the imbalance is x + r_2 - 2 r_1 + r_0. r_1 and r_2 are sums of disjoint powers of three: if r_1 > 0, the
    largest power is in r_2 and exceeds twice all smaller ones, so r_2 > 2 r_1. The least is x, at r_0 = r_1 = r_2 = 0:
    every worker gets the largest size alone.
    """
    slots = 3 * c
    s = 3 ** (slots - 1) + 1
    return SmallStep((x, 0, x), (c, c, c), (*(s - 3**j for j in reversed(range(slots))), s), (*(1,) * slots, slots))


_ONES_AND_TENS = SmallStep((1000, 0), (5, 5), (1, 10), (10, 10))

CASES = {
    "min-max": Case(
        "with the least maximum load instead of the least imbalance, the gap falls to max(s, D_pre - c)",
        least_maximum,
        not_reduced,
        (_ONES_AND_TENS,),
    ),
    "ties": Case(
        "of least maximum load, the heaviest worker's requests are all smaller than the lightest's",
        least_maximum,
        not_separated,
        (_ONES_AND_TENS,),
    ),
    "separation": Case(
        "of least imbalance and leximax, the heaviest worker's requests are all smaller than the lightest's",
        lambda step: step.lexi_optima,
        not_separated,
        (SmallStep((92, 100, 0), (1, 1, 1), (1, 10), (3, 3)),),
    ),
    "tie-break": Case(
        "of least imbalance, without a tie-break, the gap falls to max(s, D_pre - c)",
        lambda step: step.optima[1],
        not_reduced,
        (SmallStep((25, 24, 23, 0), (1, 1, 1, 1), (1, 5, 6), (2, 3, 2)),),
    ),
    "copies": Case(
        "there are copies enough of each size: the lightest worker is given the largest alone while the gap is s - 1",
        lambda step: step.lexi_optima,
        not_the_largest,
        (SmallStep((100, 0), (2, 2), (1, 2, 10), (3, 3, 1)),),
    ),
    "definition-1": Case(
        "of least imbalance and leximax, the gap falls to max(s, D_pre - c)",
        lambda step: step.lexi_optima,
        not_reduced,
        (
            SmallStep((1000, 0, 1000), (1, 1, 1), (1, 5, 7, 8), (1, 1, 1, 3)),
            stubborn_step(1, 1000),
            stubborn_step(2, 1000),
        ),
    ),
}


def denies(case: Case, step: SmallStep) -> Placement | None:
    """Return a placement that denies the case, or None; a step outside the hypotheses denies nothing."""
    if len(set(step.free)) != 1 or not step.free[0] or not step.is_overloaded:
        return None
    among = case.among(step)
    excess = case.excess(step, among)
    return np.asarray(among[int(np.argmax(excess))]) if excess.max() > 0 else None
