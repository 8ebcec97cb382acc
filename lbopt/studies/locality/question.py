"""A question of the locality study: a figure that ELDR prints, and how ours is computed from one world.

A printed range spans models and workloads there; ours is one model. The best balancer is the best of four in each
world, at each rate and for each quantity, as in the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lbopt.studies.locality.plan import BALANCERS, WORKERS, PlannedRun
from lbopt.studies.printed import Printed

SOURCE = "ELDR, arXiv 2607.00466"

#: What one world answered, and the rates of the study.
Answer = dict[str, Any]
Figure = Callable[[Answer, tuple[float, ...]], float | None]


@dataclass(frozen=True, slots=True)
class Question:
    """A row of the study.

    Parameters
    ----------
    item
        The item of the study whose runs it needs.
    workload
        "task" or "language".
    quantity
        What it is about.
    printed
        The figure of the source.
    figure
        From the answer of one world to our value; None where the world cannot tell.
    repeats
        The item that asks for the same figure of ours, if there is one: the tally counts it there.
    """

    item: str
    workload: str
    quantity: str
    printed: Printed
    figure: Figure
    repeats: str = ""


def change(answer: Answer, run: PlannedRun, of: str, base: str = "round-robin") -> float | None:
    """Return by how many percent a run's `of` exceeds that of the rule `base` in the same place.

    Parameters
    ----------
    answer
        Answer of one world.
    run
        The run.
    of
        The quantity.
    base
        The rule that it is compared with.
    """
    runs = answer["runs"]
    other = replace(run, policy=base)
    if run.key not in runs or other.key not in runs:
        return None
    return 100 * (float(runs[run.key][of]) / float(runs[other.key][of]) - 1)


def mean_over_rates(policy: str, of: str, base: str, workers: int = WORKERS, law: str = "") -> Figure:
    """Return the mean over rates of the change against a rule; "best" is the load balancer that is best at each.

    Parameters
    ----------
    policy
        The rule.
    of
        The quantity.
    base
        The rule that it is compared with, or "best".
    workers
        Decoders.
    law
        Name of the step time.
    """

    def figure(answer: Answer, rates: tuple[float, ...]) -> float | None:
        found = []
        for rate in rates:
            run = PlannedRun("decoders", workers, rate, policy, law)
            bases = BALANCERS if base == "best" else (base,)
            changes = [change(answer, run, of, one) for one in bases]
            if None in changes:
                return None
            found.append(max(value for value in changes if value is not None))  # the best has the least of `of`
        return sum(found) / len(found)

    return figure
