"""The statements of `constants`, judged under step times that a user gives: measured constants, or another model's."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.studies.locality.constants import STATEMENTS
from lbopt.studies.locality.question import Answer, Question, mean_over_rates
from lbopt.studies.verdict import Judged


@dataclass(frozen=True, slots=True)
class AtLaw:
    """A statement under the step time of this name."""

    law: str
    judged: Judged[Question]


def at_laws(
    asked: list[Question], answers: dict[str, list[Answer]], rates: tuple[float, ...], laws: tuple[str, ...]
) -> list[AtLaw]:
    """Return the statements that the worlds can answer, those of a workload together, and under each law in its order.

    Parameters
    ----------
    asked
        All statements; those of `STATEMENTS` are taken.
    answers
        Worlds by workload.
    rates
        Requests a second of the study.
    laws
        Names of step times.
    """
    found = []
    for one in asked:
        of = STATEMENTS.get(one.quantity)
        if one.item != "routers" or of is None:
            continue
        for law in laws:
            figure = mean_over_rates("eldr", of, "best", law=law)
            values = [figure(answer, rates) for answer in answers.get(one.workload, [])]
            told = tuple(value for value in values if value is not None)
            if told:
                found.append(AtLaw(law, Judged(one, told)))
    return found
