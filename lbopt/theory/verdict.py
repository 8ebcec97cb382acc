"""What can be said of a claim after it was checked."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """The five ends of a check, the gravest first.

    REFUTED: an exact statement was violated, or an average lies outside its joint 99.99 % region.
    UNDECIDED: an optimum was not proved, or an average lies between the 99 % and the 99.99 % region.
    HOLDS: nothing speaks against it where its hypotheses are met.
    NOTHING_LEFT: what it bounds from above was zero throughout, which no bound could fail.
    OUTSIDE: it was only looked at where its hypotheses are not met, so nothing follows for it.
    """

    REFUTED = "refuted"
    UNDECIDED = "undecided"
    HOLDS = "holds"
    NOTHING_LEFT = "nothing left"
    OUTSIDE = "outside the regime"


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict over all regimes: one refutation refutes; where nothing is left, nothing is said."""
    found = set(verdicts)
    return next((verdict for verdict in Verdict if verdict in found), Verdict.UNDECIDED)
