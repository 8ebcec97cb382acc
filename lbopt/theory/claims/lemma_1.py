"""Lemma 1 of BF-IO, as printed and corrected: one round of Theorem 1 under a least maximum load."""

from __future__ import annotations

import numpy as np

from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.regime import at_least, between, measured, require
from lbopt.theory.steps.small_step import (
    MOST_PLACEMENTS,
    Placement,
    SmallStep,
    gaps,
    placements_of,
    second_opinion,
    until,
    whole_rounds,
)
from lbopt.theory.steps.statements import Excess, Statement, denied_rows, held_against, preferred

#: Two workers of 10 + 10 and one of 1 + 1: the maximum 20 is least, for two of the four tens always meet.
STORED = SmallStep((0, 0, 0), (2, 2, 2), (1, 10), (2, 4))

_LISTED = {"s_max": between(2, 50, "s_max of at most 50 here (all optima are listed)")}


@measured(
    "lemma-1",
    **_LISTED,
    optima=at_least(1, "at least one optimum to look at"),
    solved=at_least(0, "a number of rounds to solve twice"),
)
def measure_corrected(
    *, G: int = 3, B: int = 3, s_max: int = 6, optima: int = 3_000, solved: int = 50, seed: int
) -> list[Finding]:
    """List all optima of random rounds until there are `optima`; the first `solved` rounds are solved twice.

    Parameters
    ----------
    s_max
        Largest prompt, tokens.
    solved
        First steps that the exact search solves as well.
    """
    regime = _regime("lemma-1", G, B, s_max)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 11, G, B, s_max]))
    steps = list(until(whole_rounds(G, B, s_max), optima, rng))
    rows = [held_against(statement, regime, steps) for statement in round_statements()]
    return [*rows, second_opinion(regime, steps[:solved])] if solved else rows


def round_statements(slack: int = 0) -> tuple[Statement, Statement]:
    """Return the two corrected inequalities of rounds, each with `slack` tokens to spare."""

    def gap(step: SmallStep, found: Placement) -> Excess:
        return np.asarray(gaps(step.loads(found)) - (step.sizes[-1] - 1 + slack))

    def cost(step: SmallStep, found: Placement) -> Excess:
        return np.full(len(found), step.optima[0] - (len(step.free) - 1) * (step.sizes[-1] - 1 + slack))

    return (
        Statement("gap of the leximax optimum over (largest size - 1) (tokens)", preferred("leximax"), gap),
        Statement("Imb of every optimum over (G - 1)(largest size - 1) (tokens)", preferred("every"), cost),
    )


def _over_the_largest(step: SmallStep, found: Placement) -> Excess:
    return np.asarray(gaps(step.loads(found)) - step.sizes[-1])


PRINTED = Statement(
    "gap of an optimum over its largest size (tokens)", preferred("every"), _over_the_largest, (STORED,)
)


@measured("lemma-1-printed", **_LISTED, rounds=at_least(1, "at least one round to look at"))
def measure_printed(
    *, G: int = 3, B: int = 2, s_max: int = 10, rounds: int = 2_000, stored: bool = True, seed: int
) -> list[Finding]:
    """Look at the stored round, then at random ones until an optimum is wider than s_max.

    Parameters
    ----------
    s_max
        Largest prompt, tokens.
    stored
        Whether the stored steps are looked at first.
    """
    regime = _regime("lemma-1-printed", G, B, s_max)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 10, G, B, s_max]))
    known = {"stored: 4 requests of 10 and 2 of 1, G=3, B=2": STORED} if stored else {}
    draw = whole_rounds(G, B, s_max)
    return denied_rows(PRINTED, known, regime, (draw(rng) for _ in range(rounds)))


def _regime(claim: str, G: int, B: int, s_max: int) -> str:
    placements = placements_of(G, B, min(s_max, G * B))
    few = f"rounds of at most {MOST_PLACEMENTS:,} placements here (all optima are listed)"
    found = f"G = {G}, B = {B} and s_max = {s_max} give up to {placements:,}"
    require(claim, placements <= MOST_PLACEMENTS, few, found)
    return f"G={G}, B={B}, s<={s_max}"


CLAIMS = (
    claim(
        "lemma-1-printed",
        measure_printed,
        quick=({}, {"G": 4, "B": 2, "s_max": 6, "stored": False}),
        full=(
            {},
            *({"G": G, "B": B, "s_max": s, "stored": False} for G, B, s in ((4, 2, 6), (3, 3, 6), (5, 2, 5))),
        ),
    ),
    claim("lemma-1", measure_corrected, quick=({},), full=({"optima": 20_000, "solved": 200},)),
)
