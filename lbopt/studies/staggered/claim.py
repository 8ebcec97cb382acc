"""A printed statement beside ours, each held against one baseline and for one reading of staggered dispatch.

A single printed number stands for a range of 30 % around it: it is of one run on another machine, with other requests.
What the verdicts mean is in `lbopt.studies.verdict`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lbopt.studies.staggered.rows import Rows

#: From the rows of one seed to our value.
Figure = Callable[[Rows], float | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """One printed statement.

    Parameters
    ----------
    item
        The item of the study whose rows it needs.
    quantity, unit
        What it is about.
    low, high
        The printed range; infinite where it is open.
    printed
        As the source has it.
    rule
        The contender that is to have the gain; empty where the statement is of the baseline alone.
    against
        The baseline.
    figure
        Our value of one seed; None where the seed cannot tell.
    """

    item: str
    quantity: str
    unit: str
    low: float
    high: float
    printed: str
    rule: str
    against: str
    figure: Figure
