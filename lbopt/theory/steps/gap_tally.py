"""Lemma 2 under Definition 1 over many small steps: how the gaps of their optima lie against its bound.

Steps are drawn and listed in compiled code, `lbopt.kernels.sampling.gap_optima`; a step that violates the bound comes
back as a `SmallStep`, which is listed anew by another loop and made as small as possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lbopt.theory.finding import Finding
from lbopt.theory.steps.shrink import Placement, counterexample, shrink
from lbopt.theory.steps.small_step import SmallStep, combinations_of, gaps

#: Which optima the lemma is about, for the report.
TIES = {"every": "an optimum", "leximax": "a leximax optimum", "squares": "an optimum of least squares"}


@dataclass(frozen=True, slots=True)
class GapTally:
    """What the optima of many steps were like.

    Parameters
    ----------
    steps, optima
        How many were drawn and listed.
    at_work
        Optima of steps in which the bound is below the gap before admission.
    tight, tight_at_work, tight_second
        Optima whose gap is the bound where that is 1 or more; those of them at which the bound is at work, and those
        at which a lightest worker holds a request below the largest size (Case II of the proof).
    violations
        Optima above the bound.
    largest
        The largest gap less the bound, tokens.
    worst
        The step that has it.
    """

    steps: int
    optima: int
    at_work: int
    tight: int
    tight_at_work: int
    tight_second: int
    violations: int
    largest: int
    worst: SmallStep


def definition_1_bound(step: SmallStep) -> int:
    """Return (s - 2) + (D_pre - [s min c - (s - 1) max c])^+ with s the largest size present, tokens."""
    s = step.sizes[-1]
    return s - 2 + max(0, step.gap_before - (s * min(step.free) - (s - 1) * max(step.free)))


def plentiful_bound(step: SmallStep) -> int:
    """Return the same with floor((s - 1) (G - 1) / G) for s - 2, tokens: never more."""
    s, G = step.sizes[-1], len(step.free)
    return definition_1_bound(step) - (s - 2) + (s - 1) * (G - 1) // G


def preferred(step: SmallStep, ties: str) -> Placement:
    """Return the optima that a rule for ties leaves, int64 (n, G, m)."""
    if ties == "leximax":
        return step.lexi_optima
    optima = step.optima[1]
    if ties == "squares":
        squares = (step.loads(optima) ** 2).sum(axis=1)
        optima = optima[squares == squares.min()]
    return np.asarray(optima)


def gap_tally(
    G: int,
    c_min: int,
    c_max: int,
    s_max: int,
    classes: int,
    spread: int,
    optima: int,
    seed: int,
    *,
    ties: str,
    plentiful: bool,
    less: int = 0,
) -> GapTally:
    """Draw steps that meet Definition 1 until they have so many optima in all, and hold each against the bound.

    Parameters
    ----------
    G
        Number of workers.
    c_min, c_max
        Fewest and most free slots of a worker.
    s_max
        Largest size, tokens, in every pool.
    classes
        Number of different sizes.
    spread
        Largest load before admission, tokens.
    optima
        Number of optima to list.
    seed
        Seed of the steps.
    ties
        Which optima count, a key of `TIES`.
    plentiful
        Whether the pool has as many requests of the largest size as there are free slots.
    less
        Tokens that are taken off the bound: a planted falsehood.
    """
    from lbopt.kernels.arrays import record
    from lbopt.kernels.sampling import gap_optima as kernels

    tally, step = record(kernels.TALLY), record(kernels.STEP_TALLY)
    tally.largest = -(1 << 40)
    before, free, sizes, copies = (np.zeros(size, np.int64) for size in (G, G, classes, classes))
    worst = kernels.Example(before, free, sizes, copies, np.zeros((G, classes), np.int64))
    start = np.random.SeedSequence([seed, G, c_min, c_max, s_max, classes, spread, plentiful])
    stream = start.generate_state(1, np.uint64)[0]
    code = {"every": kernels.EVERY, "leximax": kernels.LEXIMAX, "squares": kernels.SQUARES}[ties]
    pattern, first = combinations_of(classes, c_max)
    kernels.tally_optima(
        stream, c_min, c_max, s_max, spread, plentiful, code, less, optima, pattern, first, tally, step, worst
    )
    return GapTally(
        steps=int(tally.steps),
        optima=int(tally.optima),
        at_work=int(tally.at_work),
        tight=int(tally.tight),
        tight_at_work=int(tally.tight_at_work),
        tight_second=int(tally.tight_second),
        violations=int(tally.violations),
        largest=int(tally.largest),
        worst=SmallStep(*(tuple(array.tolist()) for array in (before, free, sizes, copies))),
    )


def tally_finding(
    regime: str,
    part: str,
    found: GapTally,
    *,
    ties: str,
    plentiful: bool,
    less: int = 0,
    bound: Callable[[SmallStep], int] = definition_1_bound,
) -> Finding:
    """Return the row of a tally; what violates the bound is made as small as possible.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    part
        Which part of the statement it is, for the report.
    found
        The tally.
    ties, plentiful
        As given to `gap_tally`.
    less
        Tokens that are taken off `bound`.
    bound
        Returns the bound of a step, tokens, which is what `gap_tally` held it against.
    """

    def beyond(step: SmallStep) -> Placement | None:
        if not step.is_overloaded or len(step.sizes) < 2 or (plentiful and step.copies[-1] < sum(step.free)):
            return None
        chosen = preferred(step, ties)
        wide = gaps(step.loads(chosen)) > bound(step) - less
        return np.asarray(chosen[int(np.argmax(wide))]) if wide.any() else None

    example = None
    if found.violations:
        step, placement = shrink(found.worst, beyond)
        loads = step.loads(placement)
        says = (
            f"least imbalance {step.optima[0]}, here at loads {', '.join(map(str, loads))}: "
            f"the gap {gaps(loads)} is above {bound(step) - less}"
        )
        example = counterexample(step, placement, says)
    return Finding(
        regime=regime,
        quantity=f"{part} gap of {TIES[ties]} over the bound (tokens)",
        kind="exact",
        relation="<=",
        measured=found.largest,
        predicted=0,
        trials=found.optima,
        violations=found.violations,
        counterexample=example,
        note=f"all such optima of {found.steps:,} steps; {found.at_work:,} where the bound is below the gap before, "
        f"{found.tight:,} tight, {found.tight_at_work:,} of these where it is below, {found.tight_second:,} in Case II",
    )
