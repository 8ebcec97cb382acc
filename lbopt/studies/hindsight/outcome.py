"""What a study of hindsight found: one row a rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lbopt.display import Displayed
from lbopt.hindsight.interval import ClairvoyantInterval, Ends
from lbopt.studies.hindsight.config import HindsightConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInHindsight:
    """A rule's run beside what was possible with all lengths known.

    Parameters
    ----------
    rule, admission
        Its name, and "immediate" or "pooled".
    tokens, steps
        Tokens that the requests emit, and steps in which something runs.
    barriers, imbalance
        Sums over these steps, tokens.
    seconds
        Of these steps.
    timetable
        Place in `HindsightOutcome.intervals` of its starts.
    optimum_imbalance, optimum_seconds
        The least that any placement of the same starts has, between two certified ends.
    share_of_ceiling
        Least seconds of any rule, whomever it admits and when, over `seconds`.
    first_come_seconds
        `optimum_seconds` of the starts of first come, first served.
    is_proved
        Whether the least imbalance of its starts is proved: both ends are one number, which no solver claims.
    optimum
        How sure that number is: "checked", "by the search", "claimed by" and a solver, or "open".
    """

    rule: str
    admission: str
    tokens: int
    steps: int
    barriers: int
    imbalance: int
    seconds: float
    timetable: int
    optimum_imbalance: Ends
    optimum_seconds: Ends
    share_of_ceiling: float
    first_come_seconds: Ends
    is_proved: bool
    optimum: str = "open"

    @property
    def tokens_per_second(self) -> float:
        """While something runs."""
        return self.tokens / self.seconds

    @property
    def mean_imbalance(self) -> float:
        """Imbalance of a step in the mean, tokens."""
        return self.imbalance / self.steps

    @property
    def ratio(self) -> Ends:
        """Its competitive ratio on this run in time: between what is proved and what is possible."""
        return self.optimum_seconds.over(self.seconds)

    @property
    def imbalance_ratio(self) -> Ends:
        """The same in imbalance; the high end is infinite where an optimum without imbalance cannot be excluded."""
        return self.optimum_imbalance.over(self.imbalance)

    @property
    def imbalance_above(self) -> Ends:
        """Its imbalance less that of the optimum, tokens summed over the steps; finite where the ratio is not."""
        return Ends(self.imbalance - self.optimum_imbalance.high, self.imbalance - self.optimum_imbalance.low)

    @property
    def first_come_ratio(self) -> Ends:
        """Its seconds over those of the best placement of the starts of first come, first served; may be below 1."""
        return self.first_come_seconds.over(self.seconds)


@dataclass(slots=True, eq=False, repr=False)
class HindsightOutcome(Displayed):
    """All rules, and the intervals of their timetables.

    Parameters
    ----------
    config
        What was asked.
    trace
        Name, digest and number of the requests.
    rules
        One row a rule, in the order asked for.
    intervals
        One a timetable, that of first come, first served at the beginning.
    ceiling_tokens_per_second
        What no rule can pass.
    notes, interrupted, seconds
        As for every study.
    """

    config: HindsightConfig
    trace: dict[str, Any]
    rules: list[RuleInHindsight] = field(default_factory=list)
    intervals: list[ClairvoyantInterval] = field(default_factory=list)
    ceiling_tokens_per_second: float = 0.0
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<HindsightOutcome {self.trace.get('name')}: {len(self.rules)} rules>"

    @property
    def fastest(self) -> RuleInHindsight:
        """The rule with most tokens a second."""
        return min(self.rules, key=lambda one: one.seconds)
