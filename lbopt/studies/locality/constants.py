"""Verdicts that rest on assumed constants, over the plausible range of both: does it hold, or where does it turn?

The item `constants` runs the rules of four statements with the default constants, and at both ends of the seconds
beside experts with three values of the seconds a request (`laws`). Each pair is simulated anew: the time of a step
decides when requests end, so what a rule sees and chooses depends on it. Where the mean effect has another sign at two
neighbours of the grid, the place where it is zero is interpolated between them.

**What a measurement says of the ranges.** A whole step of Qwen3-30B-A3B, captured as a graph on an H100 (results: *The
constants, measured on an H100*), takes 1.92 ms beside experts and 6.9 us a request. That is the device alone. The
host's part was not measured; reports of engines have 0.15 ms where the next step is scheduled ahead, 4 to 13 ms where
it is not, and up to 103 us a request. So 1.9 to 15 ms and 7 to 110 us on an H100: the low end of the first is nearly
twice that of `laws.OTHER_SECONDS`, which counts bytes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lbopt.hardware import ExpertStepTime
from lbopt.studies.locality.laws import GRID, with_constants
from lbopt.studies.locality.questions import Answer, Question, judged_by, mean_over_rates
from lbopt.studies.verdict import Judged

ITEM = "constants"

#: Quantity of a statement of the item `routers`, and what of a run it is about.
STATEMENTS = {"P50 of eldr against the best balancer": "p50", "P99 of eldr against the best balancer": "p99"}


@dataclass(frozen=True, slots=True)
class AtConstants:
    """A statement judged with other constants: seconds of a step beside experts, and of a request."""

    other: float
    per_request: float
    judged: Judged[Question]

    @property
    def said(self) -> str:
        """Return the constants as text."""
        return f"{1e3 * self.other:g} ms, {1e6 * self.per_request:g} µs"


@dataclass(frozen=True, slots=True)
class ConstantBand:
    """One statement at the default constants, which come first, and at all pairs of the grid."""

    question: Question
    points: tuple[AtConstants, ...]

    @property
    def by_effect(self) -> list[AtConstants]:
        """All points, from the lowest effect to the highest."""
        return sorted(self.points, key=lambda point: point.judged.ours.mean)

    @property
    def verdicts(self) -> dict[str, list[AtConstants]]:
        """The points of each verdict."""
        found: dict[str, list[AtConstants]] = {}
        for point in self.points:
            found.setdefault(point.judged.verdict, []).append(point)
        return found

    @property
    def turns(self) -> list[tuple[float, float]]:
        """Seconds beside experts at which the mean effect is zero, and the seconds a request that they are at."""
        return _zeros([(point.per_request, point.other, point.judged.ours.mean) for point in self.points])

    @property
    def turns_of_request(self) -> list[tuple[float, float]]:
        """Seconds a request at which the mean effect is zero, and the seconds beside experts that they are at."""
        return _zeros([(point.other, point.per_request, point.judged.ours.mean) for point in self.points])

    @property
    def said(self) -> str:
        """Return whether the verdict holds, and where the sign of the effect turns, as text."""
        verdicts = self.verdicts
        if len(verdicts) == 1:
            (one,) = verdicts
            text = f"holds for all: {one}"
        else:
            parts = (f"{verdict} at {'; '.join(point.said for point in at)}" for verdict, at in verdicts.items())
            text = f"depends: {' | '.join(parts)}"
        turns = [f"other_seconds = {1e3 * at:.1f} ms ({1e6 * fixed:g} µs a request)" for at, fixed in self.turns]
        turns += [
            f"{1e6 * at:.0f} µs a request (other_seconds = {1e3 * fixed:g} ms)" for at, fixed in self.turns_of_request
        ]
        return f"{text}. Its sign flips at {'; '.join(turns)}" if turns else f"{text}. Its sign holds"


def _zeros(points: list[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Return where the effect is zero along each line, and the line."""
    found = []
    for line in sorted({line for line, _, _ in points}):
        along = sorted((place, effect) for one, place, effect in points if one == line)
        for (low, before), (high, after) in pairwise(along):
            if before * after < 0:
                found.append((low + (high - low) * before / (before - after), line))
    return found


@dataclass(frozen=True, slots=True)
class AtLaw:
    """A statement under the step time of this name."""

    law: str
    judged: Judged[Question]


Answers = Mapping[str, Sequence[Answer]]


def at_laws(asked: Sequence[Question], answers: Answers, rates: tuple[float, ...], laws: Iterable[str]) -> list[AtLaw]:
    """Return the statements of `STATEMENTS` that the worlds can answer, under each step time in its order.

    Those of a workload stand together.
    """
    found = []
    for one in asked:
        of = STATEMENTS.get(one.quantity)
        if one.item == "routers" and of is not None:
            judged = {law: judged_by(one, mean_over_rates("eldr", of, "best", law=law), answers, rates) for law in laws}
            found += [AtLaw(law, told) for law, told in judged.items() if told is not None]
    return found


def bands_of(asked: Sequence[Question], answers: Answers, rates: tuple[float, ...]) -> list[ConstantBand]:
    """Return the band of each statement of `STATEMENTS` that the worlds can answer at all constants."""
    base = ExpertStepTime.of_eldr()
    pairs = ((base.other_seconds, base.seconds_per_request), *GRID)
    laws = {with_constants(*pair): pair for pair in pairs}
    found = at_laws(asked, answers, rates, laws)
    points: dict[Question, list[AtConstants]] = {one.judged.question: [] for one in found}
    for one in found:
        points[one.judged.question].append(AtConstants(*laws[one.law], one.judged))
    return [ConstantBand(question, tuple(at)) for question, at in points.items() if len(at) == len(pairs)]
