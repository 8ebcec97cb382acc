"""A question of the staggering study: a figure of SBS, for one baseline and one reading of staggered dispatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lbopt.studies.printed import Printed
from lbopt.studies.staggered.rows import Rows

#: From the rows of one seed to our value.
Figure = Callable[[Rows], float | None]


@dataclass(frozen=True, slots=True)
class Question:
    """A row of the study.

    Parameters
    ----------
    item
        The item of the study whose rows it needs.
    quantity
        What it is about.
    printed
        The figure of the source.
    rule
        The contender that is to have the gain; empty where the figure is of the baseline alone.
    against
        The baseline.
    figure
        Our value of one seed; None where the seed cannot tell.
    """

    item: str
    quantity: str
    printed: Printed
    rule: str
    against: str
    figure: Figure
