"""Holds what is said of one step in several ways against each other: nobody knows the optimum, all must agree on it.

A bound above the value of a placement that anybody found is a contradiction, and so are two optima that differ. Values
are counted again here, in Python integers, from the placement and the numbers of the step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from solvers.reliability.mid_steps import MidStep
from solvers.reliability.ways import Said, Way

#: What is counted of each class of steps, in this order.
COLUMNS = ("steps", "all optimal", "none optimal", "answers", "optimal", "guarded", "contradictions")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What is wrong, in words; the slots with which it is, and the least value found with them."""

    told: str
    slots: list[int]
    least: int | None


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was said in one way, with the requests of each worker and the imbalance counted again."""

    way: Way
    said: Said
    counts: list[int]
    value: int

    @classmethod
    def of(cls, step: MidStep, way: Way) -> _Answer:
        said = way.ask(way.problem)
        counts, loads = [0] * len(step.loads), list(step.loads)
        for i, g in enumerate(way.assignment(said) or []):
            if g >= 0:
                counts[g] += 1
                loads[g] += step.sizes[i]
        return cls(way, said, counts, len(loads) * max(loads) - sum(loads))

    def fits(self, slots: list[int]) -> bool:
        """Whether its placement is one where workers have these slots."""
        if self.said.assignment is None or any(n > free for n, free in zip(self.counts, slots, strict=True)):
            return False
        return sum(self.counts) == min(len(self.said.assignment), sum(slots))

    def wrong_alone(self) -> str | None:
        """Which rule it breaks by itself."""
        if self.said.optimal and not self.fits(self.way.slots):
            return "an optimum that breaks the slots"
        if self.said.optimal and self.said.bound != self.way.factor * self.value:
            return f"optimal with bound {self.said.bound} and value {self.way.factor * self.value}"
        return None

    def __str__(self) -> str:
        least = f"at least {self.said.bound / self.way.factor:g}"
        if self.said.assignment is None:
            return f"{self.way.name}: nothing, {least}"
        return f"{self.way.name}: {self.value} {'optimal' if self.said.optimal else f'{least}, {self.said.stop}'}"


def contradiction(step: MidStep, ways: Iterable[Way], seen: Counter) -> Contradiction | None:
    """Ask in all ways and compare.

    Parameters
    ----------
    step
        The step.
    ways
        How to ask.
    seen
        Counts of the class of the step, and of each way; changed in place.
    """
    answers: list[_Answer] = []
    wrong: list[tuple[str, Way]] = []
    for way in ways:
        try:
            answers.append(_Answer.of(step, way))
        except Exception as error:  # whatever it is, the run goes on and tells
            wrong.append((f"{way.name} raises {error!r}", way))
    for one in answers:
        told, least = one.wrong_alone(), _least(answers, one.way.slots)
        if told is None and least is not None and one.said.bound > one.way.factor * least:
            told = f"at least {one.said.bound / one.way.factor:g}, but {least} was found"
        if told is not None:
            wrong.append((f"{one.way.name}: {told}", one.way))
    _count(step, answers, bool(wrong), seen)
    if not wrong:
        return None
    slots = wrong[0][1].slots
    told = f"{'; '.join(words for words, _ in wrong)} ({', '.join(map(str, answers))})"
    return Contradiction(told, slots, _least(answers, slots))


def _least(answers: list[_Answer], slots: list[int]) -> int | None:
    return min((one.value for one in answers if one.fits(slots)), default=None)


def _count(step: MidStep, answers: list[_Answer], wrong: bool, seen: Counter) -> None:
    optimal = [one.way.name for one in answers if one.said.optimal]
    counts = (
        ("steps", 1),
        ("all optimal", len(optimal) == len(answers)),
        ("none optimal", not optimal),
        ("answers", len(answers)),
        ("optimal", len(optimal)),
        ("guarded", sum(one.said.stop == "time" for one in answers)),
        ("contradictions", wrong),
    )
    admission = "all admitted" if step.all_admitted else "some wait"
    for column, number in counts:
        seen[f"{step.family}, {admission}|{column}"] += int(number)
    for one in answers:
        seen[f"{one.way.name}|answers"] += 1
        seen[f"{one.way.name}|optimal"] += one.said.optimal
        seen[f"{one.way.name}|guarded"] += one.said.stop == "time"
