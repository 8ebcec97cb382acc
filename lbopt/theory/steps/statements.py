"""Statements about the optima of a step, each held against all of them, and the cases of the printed Lemma 2.

A statement says which placements it is about and by how much one is beyond it. Steps are drawn, all optima of each are
listed, and the first step that denies the statement is shown.

What the argument of the printed Lemma 2 of BF-IO uses is one case an assertion. Its steps have the same number c >= 1
of free slots on every worker (so that E_k holds whatever its delta) and a pool that meets Definition 1; s is the
largest size present, which is the weakest reading of what is to be denied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.theory.finding import Finding
from lbopt.theory.steps.small_step import Placement, SmallStep, gaps

Excess = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Statement:
    """What a lemma says of placements of a step that meets its hypotheses.

    Parameters
    ----------
    quantity
        What is measured, for the report.
    among
        The placements that it is said of, int64 (n, G, m).
    excess
        (n,): above 0 where it is denied; for gaps, by how many tokens.
    stored
        Steps in which it is denied.
    """

    quantity: str
    among: Callable[[SmallStep], Placement]
    excess: Callable[[SmallStep, Placement], Excess]
    stored: tuple[SmallStep, ...] = ()


def held_against(statement: Statement, regime: str, steps: Iterable[SmallStep], *, first: bool = False) -> Finding:
    """Return how the placements of steps lie to a statement.

    Parameters
    ----------
    regime
        Of the steps, in the words of the report.
    steps
        Steps that meet the hypotheses.
    first
        Whether the first step that denies the statement is the last to be looked at.
    """
    found: list[Excess] = []
    example = None
    for step in steps:
        among = statement.among(step)
        found.append(statement.excess(step, among))
        if example is None and found[-1].max() > 0:
            placement = among[int(np.argmax(found[-1]))]
            example = counterexample(step, placement)
            if first:
                break
    excess = np.concatenate(found)
    if first:
        more: dict[str, Any] = {"measured": max(0, int(excess.max())), "violations": int(example is not None)}
    else:
        more = {"note": f"all of {len(found):,} steps; {int((excess == 0).sum()):,} meet the bound with equality"}
    return Finding.exact(regime, statement.quantity, excess, counterexample=example, **more)


def denied_rows(
    statement: Statement, stored: dict[str, SmallStep], regime: str, steps: Iterable[SmallStep]
) -> list[Finding]:
    """Return a row for each stored step, by its regime, and one for steps up to the first that denies the statement."""
    known = [held_against(statement, name, [step], first=True) for name, step in stored.items()]
    return [*known, held_against(statement, regime, steps, first=True)]


def counterexample(step: SmallStep, placement: Placement) -> dict[str, Any]:
    """Return the counterexample of a finding: the step for ``lbopt solve``, the workers of its requests, a sentence."""
    loads = step.loads(placement)
    held = "; ".join(
        "+".join(str(size) for size, number in zip(step.sizes, row, strict=True) for _ in range(number))
        for row in placement.tolist()
    )
    cost = len(loads) * int(loads.max()) - int(loads.sum())
    here = "has it" if cost == step.optima[0] else f"costs {cost} and has the least maximum load {loads.max()}"
    says = (
        f"least imbalance {step.optima[0]}; this placement {here}: it gives {held} for loads "
        f"{', '.join(map(str, loads))}, a gap of {gaps(loads)} after {step.gap_before} (largest size {step.sizes[-1]})"
    )
    return {"problem": step.problem().to_dict(), "assignment": step.assignment(placement), "says": says}


def preferred(ties: str) -> Callable[[SmallStep], Placement]:
    """Return the optima of a step that a rule for ties keeps: "every", "leximax" or "squares"."""

    def among(step: SmallStep) -> Placement:
        optima = step.optima[1]
        if ties == "squares":
            squares = (step.loads(optima) ** 2).sum(axis=1)
            return np.asarray(optima[squares == squares.min()])
        return step.lexi_optima if ties == "leximax" else optima

    return among


#: What a rule for ties keeps, in the words of the report.
TIES = {"every": "an optimum", "leximax": "a leximax optimum", "squares": "an optimum of least squares"}


def gap_within(bound: Callable[[SmallStep], int], ties: str = "every", part: str = "") -> Statement:
    """Return that the gap of the optima which `ties` keeps is at most `bound`, tokens.

    Parameters
    ----------
    part
        Of the theorem, with a blank, for the report.
    """

    def excess(step: SmallStep, found: Placement) -> Excess:
        return np.asarray(gaps(step.loads(found)) - bound(step))

    return Statement(f"{part}gap of {TIES[ties]} over the bound (tokens)", preferred(ties), excess)


def least_maximum(step: SmallStep) -> Placement:
    """Return the leximax ones among all placements: those of least maximum load, ties broken as the lemmas need."""
    return step.leximax(step.placements)


def not_reduced(step: SmallStep, found: Placement) -> Excess:
    """Return D - max(s, D_pre - c), s the largest size present."""
    return np.asarray(gaps(step.loads(found)) - max(step.sizes[-1], step.gap_before - step.free[0]))


def not_separated(step: SmallStep, found: Placement) -> Excess:
    """Return 1 where the gap is above s and no heaviest worker's requests are all smaller than those of a lightest."""
    loads = step.loads(found)
    sizes = np.array(step.sizes)
    largest = np.where(found > 0, sizes, 0).max(axis=2)
    smallest = np.where(found > 0, sizes, sizes[-1] + 1).min(axis=2)
    heavy, light = loads == loads.max(axis=1)[:, None], loads == loads.min(axis=1)[:, None]
    lowest = np.where(heavy, largest, sizes[-1] + 1).min(axis=1)
    highest = np.where(light, smallest, 0).max(axis=1)
    return np.asarray(((gaps(loads) > sizes[-1]) & (lowest >= highest)).astype(np.int64))


def not_the_largest(step: SmallStep, found: Placement) -> Excess:
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


def _case(
    asserts: str, among: Callable[[SmallStep], Placement], excess: Callable[..., Excess], *stored: SmallStep
) -> Statement:
    return Statement(f"denied: {asserts}", among, excess, stored)


CASES = {
    "min-max": _case(
        "with the least maximum load instead of the least imbalance, the gap falls to max(s, D_pre - c)",
        least_maximum,
        not_reduced,
        _ONES_AND_TENS,
    ),
    "ties": _case(
        "of least maximum load, the heaviest worker's requests are all smaller than the lightest's",
        least_maximum,
        not_separated,
        _ONES_AND_TENS,
    ),
    "separation": _case(
        "of least imbalance and leximax, the heaviest worker's requests are all smaller than the lightest's",
        preferred("leximax"),
        not_separated,
        SmallStep((92, 100, 0), (1, 1, 1), (1, 10), (3, 3)),
    ),
    "tie-break": _case(
        "of least imbalance, without a tie-break, the gap falls to max(s, D_pre - c)",
        preferred("every"),
        not_reduced,
        SmallStep((25, 24, 23, 0), (1, 1, 1, 1), (1, 5, 6), (2, 3, 2)),
    ),
    "copies": _case(
        "there are copies enough of each size: the lightest worker is given the largest alone while the gap is s - 1",
        preferred("leximax"),
        not_the_largest,
        SmallStep((100, 0), (2, 2), (1, 2, 10), (3, 3, 1)),
    ),
    "definition-1": _case(
        "of least imbalance and leximax, the gap falls to max(s, D_pre - c)",
        preferred("leximax"),
        not_reduced,
        SmallStep((1000, 0, 1000), (1, 1, 1), (1, 5, 7, 8), (1, 1, 1, 3)),
        stubborn_step(1, 1000),
        stubborn_step(2, 1000),
    ),
}
